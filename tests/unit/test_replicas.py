"""Several trainer processes: what they agree on, and what is left when one goes."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.replicas import Hosts, largest_difference, until
from trainer.config import load_run, revision
from trainer.data.pack import pack
from trainer.data.sources import Options
from trainer.records.checkers import EverySampleOnce, OneHistory, StepsWithoutGap
from trainer.records.history import read_histories
from trainer.records.verdict import check

FOREVER = 1_000_000


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "digits"
    pack("digits", folder, Options())
    return folder


Start = Callable[..., Hosts]


@pytest.fixture
def hosts(tmp_path: Path, digits: Path) -> Iterator[Start]:
    made: list[Hosts] = []

    def make(count: int, **run: Any) -> Hosts:
        values = {
            "name": "test",
            "model": {"factory": "mlp", "args": {"hidden": 8}},
            "data": {"path": str(digits)},
            "epochs": FOREVER,
            "precision": "float64",
            "optimizer": {"kind": "adamw", "lr": 0.01},
            "evaluate": {"every_steps": FOREVER},
            "checkpoint": {"every_steps": 5},
            "network": {"reduce_deadline_s": 20, "rendezvous_s": 60},
            **run,
        }
        made.append(Hosts(tmp_path / f"hosts{len(made)}", values, count))
        return made[-1]

    yield make
    for one in made:
        one.end()


def audit(hosts: Hosts) -> None:
    check(read_histories(hosts.folder), EverySampleOnce(), OneHistory(), StepsWithoutGap()).raise_unless_kept()


def test_three_replicas_with_accumulation_are_one_process_with_the_same_global_batch(hosts: Start) -> None:
    three = hosts(3, accumulation={"accum_steps": 4, "micro_batch": 8}, max_steps=20)
    one = hosts(1, accumulation={"accum_steps": 12, "micro_batch": 8}, max_steps=20)
    three.start()
    one.start()
    assert three.wait() == [0, 0, 0]
    assert one.wait() == [0]
    alone = one.hosts[0].model_bytes(20)
    assert len({host.model_bytes(20) for host in three.hosts}) == 1
    assert largest_difference(three.hosts[0].model_bytes(20), alone) < 1e-10


def test_a_drain_ends_all_at_one_step_and_a_resume_goes_on_to_the_bit(hosts: Start) -> None:
    three = hosts(3)
    three.start(max_steps=FOREVER)
    until(lambda: three.hosts[1].steps() >= 7, "some steps")
    three.hosts[1].send(signal.SIGTERM)
    assert three.wait() == [75, 0, 75]
    stopped = {host.steps() for host in three.hosts}
    assert len(stopped) == 1
    end = stopped.pop() + 6
    three.start(max_steps=end)
    assert three.wait() == [0, 0, 0]
    never_stopped = hosts(3, max_steps=end)
    never_stopped.start()
    assert never_stopped.wait() == [0, 0, 0]
    assert three.hosts[0].model_bytes(end) == never_stopped.hosts[0].model_bytes(end)
    audit(three)


def test_a_killed_replica_ends_the_others_and_all_come_back_without_losing_a_sample(hosts: Start) -> None:
    three = hosts(3)
    three.start(max_steps=FOREVER)
    until(lambda: three.hosts[2].steps() >= 12, "some steps")
    three.hosts[2].send(signal.SIGKILL)
    assert three.wait() == [75, 75, -signal.SIGKILL]
    assert "lost a peer" in three.hosts[0].said
    assert "Traceback" not in three.hosts[0].said
    reached = max(host.steps() for host in three.hosts)
    shutil.rmtree(three.hosts[0].folder / "checkpoints")  # the first host comes back with an empty disk
    three.start(max_steps=reached + 5)
    assert three.wait() == [0, 0, 0]
    resumed = three.hosts[0].events("resumed")[-1]
    assert resumed["source"].startswith("rank ")
    assert resumed["step"] >= reached - 1  # survivors save before they go: at most the step that broke is lost
    assert len({host.model_bytes(reached + 5) for host in three.hosts}) == 1
    audit(three)


def test_a_finished_run_ends_at_once_and_waits_for_nobody(hosts: Start) -> None:
    two = hosts(2, max_steps=3)
    two.start()
    assert two.wait() == [0, 0]
    alone = two.hosts.pop()
    two.start()
    assert two.wait() == [0]
    assert "is finished" in two.hosts[0].said
    two.hosts.append(alone)


def test_a_peer_that_does_not_come_is_said_in_one_line_and_waited_for_again(hosts: Start) -> None:
    two = hosts(2, network={"reduce_deadline_s": 5, "rendezvous_s": 5})
    missing = two.hosts.pop()
    two.start()
    assert two.wait() == [75]
    assert "did not meet" in two.hosts[0].said
    assert "Traceback" not in two.hosts[0].said
    two.hosts.append(missing)


def test_new_settings_are_taken_up_by_all_at_one_step_and_refused_ones_change_nothing(hosts: Start) -> None:
    two = hosts(2)
    two.start(max_steps=FOREVER)
    until(lambda: two.hosts[0].steps() >= 3, "some steps")
    for host in two.hosts:
        two.write(host, accumulation={"accum_steps": 8, "micro_batch": 8})
        until(lambda: two.hosts[0].steps() >= 10, "steps while only one host has the new settings")
    until(lambda: all(host.events("settings") for host in two.hosts), "the new settings in force")
    settings = [host.events("settings")[0] for host in two.hosts]
    assert settings[0]["step"] == settings[1]["step"]
    assert settings[0]["from"] == {"accumulation.accum_steps": 4}
    assert settings[0]["to"] == {"accumulation.accum_steps": 8}
    wanted = revision(load_run(two.hosts[0].run_file))
    for host in two.hosts:
        ack = json.loads((host.folder / "acks" / f"{wanted}.json").read_text())
        assert ack == {"revision": wanted, "accepted": True, "step": settings[0]["step"], "reason": ""}

    for host in two.hosts:
        two.write(host, model={"factory": "mlp", "args": {"hidden": 9}})
    until(lambda: all(_refused(host.folder) for host in two.hosts), "the refusal")
    assert "model.args" in _refused(two.hosts[0].folder)[0]["reason"]
    here = two.hosts[0].steps()
    until(lambda: two.hosts[0].steps() > here + 2, "steps after the refusal")
    for host in two.hosts:
        two.write(host, model={"factory": "mlp", "args": {"hidden": 8}})
    two.hosts[0].send(signal.SIGTERM)
    assert two.wait() == [0, 75]
    assert two.hosts[0].steps() == two.hosts[1].steps()
    assert all(len(host.events("started")) == 1 for host in two.hosts)
    batches = {(e["step"], e["global_batch"]) for host in two.hosts for e in host.events("step")}
    assert all(batch == (64 if step <= settings[0]["step"] else 128) for step, batch in batches)
    audit(two)


def _refused(folder: Path) -> list[dict[str, Any]]:
    acks = [json.loads(path.read_text()) for path in (folder / "acks").glob("*.json")]
    return [ack for ack in acks if not ack["accepted"]]
