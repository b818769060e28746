"""Real trainer processes on this machine, one per replica, for tests of what happens between them."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEADLINE_S = 180.0


@dataclass
class Host:
    """One replica as it would be on a host of its own: state folder, run file, process."""

    name: str
    folder: Path
    run_file: Path
    process: Any = None

    @property
    def history(self) -> list[dict[str, Any]]:
        found = []
        for path in sorted((self.folder / "history").glob("*.jsonl")):
            lines = path.read_text().split("\n")
            found += [json.loads(line) for line in lines[:-1]]
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.history if event["event"] == name]

    def steps(self) -> int:
        return max((event["step"] for event in self.events("step")), default=0)

    def model_bytes(self, step: int) -> bytes:
        return (self.folder / "checkpoints" / f"step-{step:08d}" / "model.safetensors").read_bytes()

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    @property
    def said(self) -> str:
        return self.folder.with_suffix(".log").read_text()


@dataclass
class Hosts:
    """Start all, wait for all. `run`: the run file's content; each host has a copy of its own."""

    folder: Path
    run: Mapping[str, Any]
    count: int
    hosts: list[Host] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number in range(self.count):
            name = f"h{number}"
            run_file = self.folder / f"{name}.json"
            run_file.parent.mkdir(parents=True, exist_ok=True)
            run_file.write_text(json.dumps(self.run))
            self.hosts.append(Host(name, self.folder / name, run_file))

    def start(self, **changes: Any) -> None:
        """Start a process per host, with `changes` to the run as in another launch."""
        port = _free_port()
        context = multiprocessing.get_context("forkserver")
        preload = ("trainer.run", "trainer.sync.ddp", "trainer.sync.rendezvous", "torch._dynamo", "trainer.data.pack")
        context.set_forkserver_preload([*preload, __name__])
        for rank, host in enumerate(self.hosts):
            if changes:
                self.write(host, **changes)
            environment = {} if self.count == 1 else _environment(rank, self.count, port)
            arguments = (str(host.run_file), str(host.folder), host.name, environment)
            host.process = context.Process(target=_train, args=arguments, daemon=True)
            host.process.start()

    def write(self, host: Host, **changes: Any) -> None:
        """Replace a host's run file as Ansible does: by rename."""
        run = json.loads(host.run_file.read_text()) | changes
        temporary = host.run_file.with_suffix(".new")
        temporary.write_text(json.dumps(run))
        temporary.replace(host.run_file)

    def wait(self) -> list[int]:
        """Exit codes, by rank."""
        for host in self.hosts:
            host.process.join(DEADLINE_S)
            assert host.process.exitcode is not None, f"{host.name} does not end: {host.said}"
        return [host.process.exitcode for host in self.hosts]

    def end(self) -> None:
        for host in self.hosts:
            if host.process is not None and host.process.is_alive():
                host.process.kill()
                host.process.join()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for `condition`; fails after a deadline."""
    limit = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < limit, f"waited in vain for {what}"
        time.sleep(0.02)


def _train(run_file: str, folder: str, name: str, environment: Mapping[str, str]) -> None:
    log = os.open(Path(folder).with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.update(environment)
    from trainer.cli import main

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.exit(main(["train", run_file, "--state", folder, "--host", name]))


def _environment(rank: int, world: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def largest_difference(first: bytes, second: bytes) -> float:
    """Between two safetensors files of the same model."""
    from safetensors.torch import load

    a, b = load(first), load(second)
    assert a.keys() == b.keys()
    return max(float((a[name].double() - b[name].double()).abs().max()) for name in a)
