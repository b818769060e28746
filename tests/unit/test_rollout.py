"""What is about to change is decided for all hosts together, and said before it is done."""

import hashlib
import json
from dataclasses import replace

import pytest

from trainer.config import Run
from trainer.deploy.hostfiles import ENVIRONMENT, OVERRIDES, SETTINGS, UNIT
from trainer.deploy.rollout import Seen, Wanted, explained, rollout
from trainer.launch import Host, run_json

HOSTS = [Host("ap-1", "ap", "10.88.0.1"), Host("eu-1", "eu", "10.88.0.2"), Host("na-1", "na", "10.88.0.3")]
NAMES = [host.name for host in HOSTS]
RUN = Run(name="digits")
IMAGE = "127.0.0.1:5077/gradferry/trainer:aaa"


def run_with(**sections) -> Run:
    """RUN with other values, validated."""
    return Run.model_validate(RUN.model_dump() | sections)


def wanted(run: Run = RUN, image: str = IMAGE, unit: str = "unit") -> dict[str, Wanted]:
    text = run_json(run, HOSTS)
    files = {UNIT: f"{unit} {image}", ENVIRONMENT: "A=1", OVERRIDES: "{}\n", SETTINGS: text}
    return {name: Wanted(run, image, files, json.loads(text)["hosts"]) for name in NAMES}


def as_wanted(state: Wanted, **changes) -> Seen:
    """A host that is just so, and trains."""
    sums = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in state.files.items()}
    document = json.loads(state.files[SETTINGS])
    return replace(Seen(True, False, True, state.image, document, sums), **changes)


def seen(state: dict[str, Wanted] | None = None, **changes) -> dict[str, Seen]:
    return {name: as_wanted(one, **changes) for name, one in (state or wanted()).items()}


BARE = Seen(False, False, False, None, None, {})


def test_hosts_that_are_as_described_are_left_alone():
    decision = rollout(wanted(), seen())
    assert decision.way == "nothing"
    assert decision.lines == ("all hosts: nothing",)
    assert decision.stop == decision.write == decision.start == decision.wait == ()


def test_a_live_setting_changes_without_a_restart_and_is_named_with_both_values():
    new = run_with(accumulation={"accum_steps": 8, "micro_batch": 8})
    decision = rollout(wanted(new), seen(), given=["accumulation.accum_steps"])
    assert decision.way == "live"
    assert decision.lines == ("all hosts: accumulation.accum_steps: 4 -> 8   [live]",)
    assert decision.write == tuple(NAMES)
    assert decision.stop == decision.start == ()


def test_a_setting_that_cannot_change_live_restarts_all_hosts_together():
    new = run_with(model={"factory": "cnn", "args": {}}, accumulation={"accum_steps": 8, "micro_batch": 8})
    decision = rollout(wanted(new), seen())
    assert decision.way == "restart"
    assert decision.stop == decision.start == tuple(NAMES)
    assert "all hosts: model.factory: mlp -> cnn   [restart]" in decision.lines
    assert "all hosts: accumulation.accum_steps: 4 -> 8   [restart]" in decision.lines


def test_a_new_image_restarts_all_hosts_and_is_named():
    decision = rollout(wanted(image=IMAGE[:-3] + "bbb"), seen())
    assert decision.way == "restart"
    assert decision.lines == ("all hosts: image: trainer:aaa -> trainer:bbb   [restart]",)


def test_another_unit_with_the_same_settings_is_a_change_too():
    decision = rollout(wanted(unit="hardened"), seen())
    assert decision.way == "restart"
    assert decision.lines == ("all hosts: launch: gradferry-trainer.service   [restart]",)


def test_bare_hosts_are_started_and_then_seen_training():
    decision = rollout(wanted(), dict.fromkeys(NAMES, BARE))
    assert decision.way == "start"
    assert decision.start == decision.wait == decision.write == tuple(NAMES)
    assert decision.stop == ()


def test_a_bare_replacement_is_started_and_its_peers_are_not_touched():
    hosts = seen(fresh=False) | {"ap-1": BARE}
    decision = rollout(wanted(), hosts)
    assert (decision.way, decision.start, decision.write) == ("start", ("ap-1",), ("ap-1",))
    assert decision.wait == tuple(NAMES)
    assert "eu-1, na-1: nothing" in decision.lines


def test_new_settings_beside_a_host_that_must_start_restart_all():
    new = run_with(accumulation={"accum_steps": 8, "micro_batch": 8})
    decision = rollout(wanted(new), seen() | {"ap-1": BARE})
    assert decision.way == "restart"
    assert decision.stop == ("eu-1", "na-1")
    assert decision.start == tuple(NAMES)


def test_a_setting_that_was_given_by_hand_returns_to_the_run_file_and_that_is_said():
    eight = run_with(accumulation={"accum_steps": 8, "micro_batch": 8})
    decision = rollout(wanted(), seen(wanted(eight), overrides={"accumulation.accum_steps": 8}))
    assert decision.way == "live"
    assert decision.lines == (
        "all hosts: accumulation.accum_steps: 8 -> 4 (was given with -e, run.yml has this)   [live]",
    )


def test_a_finished_run_is_left_alone_until_something_is_asked_of_it():
    finished = {"running": False, "finished": True, "fresh": False}
    assert rollout(wanted(), seen(**finished)).way == "nothing"
    longer = rollout(wanted(run_with(epochs=40)), seen(**finished))
    assert (longer.way, longer.start) == ("start", tuple(NAMES))


def test_a_bare_host_beside_a_finished_run_is_not_started():
    decision = rollout(wanted(), seen(running=False, finished=True, fresh=False) | {"ap-1": BARE})
    assert (decision.way, decision.start, decision.wait) == ("nothing", (), ())


def test_a_trainer_that_runs_but_makes_no_steps_is_waited_for():
    decision = rollout(wanted(), seen(fresh=False))
    assert decision.way == "nothing"
    assert decision.wait == tuple(NAMES)


def test_settings_of_another_version_are_replaced_by_a_restart():
    old = {"run": {"no_longer_known": 1}, "revision": "0", "hosts": []}
    decision = rollout(wanted(), seen(run=old))
    assert decision.way == "restart"
    assert "all hosts: settings: written by another version   [restart]" in decision.lines


@pytest.mark.parametrize("way", ["nothing", "live", "start", "restart"])
def test_every_way_is_explained(way):
    assert explained(way).endswith(".")


def test_the_state_of_a_host_is_read_from_its_facts():
    facts = {
        "unit": {"active": "inactive", "image": IMAGE},
        "last_event": {"event": "ended", "reason": "finished", "code": 0},
        "fresh": False,
        "run": None,
        "files": {},
        "overrides": {},
    }
    assert Seen.of(facts).finished
    assert Seen.of(facts | {"last_event": {"event": "ended", "reason": "stopped early", "code": 0}}).finished
    assert not Seen.of(facts | {"last_event": {"event": "ended", "reason": "drained", "code": 0}}).finished
    assert not Seen.of(facts | {"unit": {"active": "active", "image": IMAGE}}).finished
