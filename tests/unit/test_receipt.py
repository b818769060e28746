"""A teardown leaves a receipt per host and can be repeated; nothing is wiped that was not pulled."""

import json
from types import SimpleNamespace

import pytest

from tests.unit.ansible_code import action
from trainer.deploy.receipt import (
    STEPS,
    Receipt,
    cluster_of,
    holds_something,
    newest_checkpoint,
    one_folder,
    read_receipt,
    receipt_for,
    receipts_for,
    write_receipt,
)
from trainer.errors import HostError

EMPTY = {"unit": {"load": "not-found"}, "run": None, "checkpoints": [], "histories": [], "data": {}}
FULL = EMPTY | {"unit": {"load": "loaded"}, "run": {"run": {"name": "digits"}}, "histories": ["ap-1-0.jsonl"]}
FRESH = Receipt("digits", "ap-1", "2026-05-01T10:00:00Z", "/pulled/new")


def finished() -> Receipt:
    receipt = Receipt("digits", "ap-1", "2026-04-01T10:00:00Z", "/pulled/old")
    for step in STEPS:
        receipt = receipt.noted(step, "2026-04-01T10:01:00Z", {})
    return receipt


def test_a_receipt_is_complete_when_every_step_is_noted():
    assert finished().complete
    assert not FRESH.noted("stopped", "now", {}).complete


def test_it_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "receipts" / "ap-1.json"
    receipt = FRESH.noted("flushed", "2026-05-01T10:00:09Z", {"step": 120, "digest": "ab"})
    write_receipt(path, receipt)
    assert read_receipt(path) == receipt
    assert [p.name for p in path.parent.iterdir()] == ["ap-1.json"]


def test_no_receipt_is_none_and_a_damaged_one_is_named(tmp_path):
    assert read_receipt(tmp_path / "ap-1.json") is None
    (tmp_path / "eu-1.json").write_text('{"cluster": ')
    with pytest.raises(HostError, match=r"eu-1\.json: not a receipt"):
        read_receipt(tmp_path / "eu-1.json")


def test_an_interrupted_teardown_goes_on_with_its_receipt():
    begun = Receipt("digits", "ap-1", "2026-04-01T10:00:00Z", "/pulled/old").noted("stopped", "then", {})
    assert receipt_for("digits", "ap-1", begun, FULL, FRESH) is begun


def test_a_finished_receipt_holds_while_the_host_is_empty_and_not_when_it_was_set_up_again():
    old = finished()
    assert receipt_for("digits", "ap-1", old, EMPTY, FRESH) is old
    assert receipt_for("digits", "ap-1", old, None, FRESH) is old
    assert receipt_for("digits", "ap-1", old, FULL, FRESH) is FRESH


HALF = Receipt("digits", "eu-1", "2026-04-01T10:00:00Z", "/pulled/old").noted("stopped", "then", {})


@pytest.mark.parametrize(
    ("old", "facts", "folder"),
    [
        ((None, None), (FULL, FULL), "new"),
        ((finished(), finished()), (EMPTY, EMPTY), "old"),  # repeated
        ((finished(), finished()), (FULL, EMPTY), "new"),  # one was set up again, the other is still empty
        ((finished(), finished()), (EMPTY, FULL), "new"),
        ((finished(), None), (EMPTY, FULL), "new"),  # a host that was not in it
        ((finished(), HALF), (EMPTY, FULL), "old"),  # interrupted
        ((HALF, None), (FULL, FULL), "old"),
        ((finished(), HALF), (FULL, FULL), "new"),  # interrupted, and the other was set up again since
        ((None, finished()), (None, EMPTY), "old"),
        ((HALF, HALF), (None, None), "new"),
    ],
)
def test_files_come_to_the_folder_of_their_own_teardown_and_to_no_older_one(old, facts, folder):
    seen = dict(zip(("ap-1", "eu-1"), facts, strict=True))
    found = receipts_for("digits", dict(zip(seen, old, strict=True)), seen, FRESH)
    answering = [host for host in seen if seen[host] is not None]
    assert one_folder(found, answering, FRESH.folder) == f"/pulled/{folder}"
    unfinished = [found[host].folder for host in answering if not found[host].complete and found[host].steps]
    assert set(unfinished) <= {f"/pulled/{folder}"}


def test_every_receipt_of_a_teardown_that_goes_on_says_its_folder(tmp_path):
    write_receipt(tmp_path / "eu-1.json", HALF)
    plan = action("teardown_plan").ActionModule.__new__(action("teardown_plan").ActionModule)
    given = {"hosts": ["ap-1", "eu-1"], "name": "digits", "confirm": "digits"}
    plan._task = SimpleNamespace(args=given | {"receipts": tmp_path, "artifacts": tmp_path}, check_mode=False)
    opened = plan._open({host: {"ansible_facts": {"gradferry_trainer": FULL}} for host in given["hosts"]})
    assert opened["folder"] == "/pulled/old"
    assert {read_receipt(tmp_path / f"{host}.json").folder for host in given["hosts"]} == {"/pulled/old"}


def test_the_receipt_of_another_cluster_counts_for_nothing():
    assert receipt_for("words", "ap-1", finished(), EMPTY, FRESH) is FRESH


def test_a_host_that_does_not_answer_is_noted_as_not_wiped_until_it_does():
    gone = FRESH.without_answer("now", "does not answer: not wiped")
    assert json.dumps(gone.gone)
    assert gone.noted("stopped", "later", {}).gone is None


def test_the_newest_checkpoint_of_all_hosts_is_taken_from_the_first_that_has_it():
    def having(*steps):
        return EMPTY | {"checkpoints": [{"name": f"step-{s:08d}", "step": s} for s in steps]}

    seen = {"ap-1": having(50), "eu-1": having(100, 50), "na-1": having(100)}
    host, checkpoint = newest_checkpoint(seen)
    assert (host, checkpoint["step"]) == ("eu-1", 100)
    assert newest_checkpoint({"ap-1": EMPTY}) is None


def test_hosts_of_another_run_are_not_torn_down():
    assert cluster_of({"ap-1": FULL}, "digits") == "digits"
    assert cluster_of({}, "digits") == "digits"
    with pytest.raises(HostError, match=r"ap-1: holds the run digits, run\.yml names words"):
        cluster_of({"ap-1": FULL}, "words")


def test_what_a_trainer_left_behind_is_something():
    assert not holds_something(EMPTY)
    assert holds_something(FULL)
    assert holds_something(EMPTY | {"data": {"digits-0": "ab"}})
