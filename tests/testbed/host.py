"""One stand-in VPS: run something in it, reboot it, switch it off."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from docker import DockerClient
from docker.models.containers import Container

from tests.testbed.cgroups import swept
from tests.testbed.errors import BedError
from tests.testbed.plan import Placed
from tests.testbed.wait import wait_for

T = TypeVar("T")
BOOT_S = 60.0


@dataclass(frozen=True)
class Host:
    """A host of a bed. Holds no state: what is true of it is asked of the engine."""

    client: DockerClient
    placed: Placed
    folder: Path  # of the bed: keys and known_hosts

    @property
    def name(self) -> str:
        return self.placed.host

    @property
    def container(self) -> Container:
        return self.client.containers.get(self.placed.container)

    def run(self, command: Sequence[str] | str) -> str:
        """Output of a command run as root through the engine, not SSH. A text is given to sh. BedError if it fails."""
        code, output = self.container.exec_run(_argv(command), demux=True)
        streams = cast("tuple[bytes | None, bytes | None]", output)
        out, err = ((part or b"").decode(errors="replace") for part in streams)
        if code:
            raise BedError(f"{self.name}: {command!r} exited with {code}: {(err or out).strip()[-500:]}")
        return out

    def succeeds(self, command: Sequence[str] | str) -> bool:
        return bool(self.container.exec_run(_argv(command)).exit_code == 0)

    def read(self, path: str) -> str | None:
        """Text of a file on the host, None where there is none."""
        return self.run(["cat", path]) if self.succeeds(["test", "-f", path]) else None

    def ssh(self, command: str, *, timeout_s: float = 60) -> str:
        """Output of a command run over SSH as an operator would."""
        done = subprocess.run(self.ssh_argv(command), capture_output=True, text=True, timeout=timeout_s)
        if done.returncode:
            raise BedError(f"{self.name}: ssh {command!r} exited with {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stdout

    def ssh_argv(self, *command: str) -> list[str]:
        options = [
            *("-i", str(self.folder / "id_ed25519"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
            *("-o", f"UserKnownHostsFile={self.folder / 'known_hosts'}", "-o", "StrictHostKeyChecking=accept-new"),
            *("-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10"),
        ]
        return ["ssh", *options, f"root@{self.placed.address}", *command]

    def kill(self, pattern: str, signal: str = "KILL") -> int:
        """Send `signal` to the host's processes whose command line matches `pattern`; how many there were."""
        pids = [int(pid) for pid in self.run(f"pgrep -f -- '{pattern}' | grep -vx $$ || true").split()]
        for pid in pids:
            self.succeeds(["kill", f"-{signal}", str(pid)])
        return len(pids)

    def reboot(self) -> None:
        """Orderly, as `reboot` on a VPS; returns when SSH answers again."""
        with swept(self.container):
            self.container.restart(timeout=60)
        self.wait_until_up()

    def power_off(self) -> None:
        """At once, as a VPS whose machine dies. Its disk stays."""
        with swept(self.container):
            self.container.kill("SIGKILL")

    def power_on(self) -> None:
        self.container.start()
        self.wait_until_up()

    def wait_until_up(self, within_s: float = BOOT_S) -> None:
        self.wait_for(lambda: self.succeeds("systemctl is-active -q ssh"), "ssh is up", within_s=within_s)

    def wait_for(self, condition: Callable[[], T | None], what: str, *, within_s: float) -> T:
        return wait_for(condition, f"{self.name}: {what}", within_s=within_s)


def _argv(command: Sequence[str] | str) -> list[str]:
    return ["sh", "-c", command] if isinstance(command, str) else list(command)
