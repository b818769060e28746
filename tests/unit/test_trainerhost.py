"""What runs on a host: taking files in, laying them out, reading what a trainer is and has."""

import hashlib
import importlib
import json
import os
from pathlib import Path

import pytest

from tests.unit.ansible_code import reader

reader("files")  # makes module_utils importable under the name that it has on a host
intake = importlib.import_module("ansible.module_utils.trainerhost.intake")
offer = importlib.import_module("ansible.module_utils.trainerhost.offer")
state = importlib.import_module("ansible.module_utils.trainerhost.state")
waiting = importlib.import_module("ansible.module_utils.trainerhost.waiting")


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def sent(tmp_path):
    """A folder as it arrives: two files of a data set."""
    folder = tmp_path / "arrived"
    folder.mkdir()
    files = {"index.json": "{}", "train.h5": "samples"}
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder, {name: sha(text) for name, text in files.items()}


def take(tmp_path, files, **more):
    return intake.Intake(str(tmp_path / "data" / "digits"), files, os.getuid(), **more)


def test_a_folder_appears_as_a_whole_with_the_mark_that_it_was_verified(tmp_path, sent):
    arrived, files = sent
    folder = take(tmp_path, files)
    assert sorted(folder.missing()) == ["index.json", "train.h5"]
    folder.place(str(arrived))
    assert folder.is_complete() and folder.missing() == []
    assert (tmp_path / "data" / "digits" / state.VERIFIED).read_text().strip() == files["index.json"]
    assert not (tmp_path / "data" / "digits.partial").exists()


def test_a_damaged_file_is_named_and_the_good_ones_are_not_sent_again(tmp_path, sent):
    arrived, files = sent
    folder = take(tmp_path, files)
    (arrived / "train.h5").write_text("cut")
    with pytest.raises(intake.Damaged, match=r"digits/train\.h5: its sha256 on this host"):
        folder.place(str(arrived))
    assert not folder.is_complete()
    assert folder.missing() == ["train.h5"]


def test_histories_go_beside_what_a_folder_holds(tmp_path, sent):
    arrived, files = sent
    there = tmp_path / "data" / "digits"
    there.mkdir(parents=True)
    (there / "other.jsonl").write_text("kept")
    take(tmp_path, files, whole=False).place(str(arrived))
    assert sorted(path.name for path in there.iterdir() if path.name != state.VERIFIED) == [
        "index.json",
        "other.jsonl",
        "train.h5",
    ]


def test_files_are_listed_with_their_sums_and_what_is_not_there_is_left_out(tmp_path):
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "ap-1-0.jsonl").write_text("line\n")
    found = offer.listed({str(tmp_path / "history"): "history", str(tmp_path / "run.json"): "run.json"})
    assert [(entry["below"], entry["bytes"], entry["sha256"]) for entry in found] == [
        ("history/ap-1-0.jsonl", 5, sha("line\n"))
    ]


def test_a_sudo_user_gets_copies_that_are_withdrawn_afterwards(tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("state")
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setattr(os, "chown", lambda path, user, group: None)  # the owner needs root; the rest does not
    laid = offer.laid_out([str(secret)])
    copy = laid["places"][str(secret)]
    assert copy != str(secret)
    assert Path(copy).read_text() == "state"
    offer.withdraw(laid["folder"])
    assert not os.path.exists(copy)


def test_nothing_but_our_own_folder_is_withdrawn(tmp_path):
    offer.withdraw(str(tmp_path))
    assert tmp_path.exists()


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A state folder in the place of the host's."""
    monkeypatch.setattr(state, "STATE", str(tmp_path))
    for name in ("status", "acks", "history", "checkpoints", "data"):
        (tmp_path / name).mkdir()
    return tmp_path


def rank(number: int = 0, **values) -> dict:
    return {"host": "ap-1", "rank": number, "t": 100.0, "state": "training", "step": 3, "revision": "r1"} | values


def show(host, *ranks) -> None:
    for one in ranks:
        (host / "status" / f"ap-1-{one['rank']}.json").write_text(json.dumps(one))


@pytest.mark.parametrize(
    ("ranks", "ready"),
    [
        ([rank()], True),
        ([rank(step=0)], False),
        ([rank(state="waiting")], False),
        ([rank(t=10.0)], False),
        ([rank(revision="old")], False),
        ([rank(), rank(1, step=0)], False),
        ([rank(), rank(1)], True),
        ([], False),
    ],
)
def test_a_host_trains_when_every_rank_has_made_a_step_since_its_start(host, monkeypatch, ranks, ready):
    monkeypatch.setattr(waiting, "started_s", lambda: 50.0)
    show(host, *ranks)
    assert (waiting.steps("r1") is not None) == ready


@pytest.mark.parametrize("reason", ["finished", "stopped early"])
def test_a_run_that_ended_as_finished_counts_as_trained(host, monkeypatch, reason):
    monkeypatch.setattr(waiting, "started_s", lambda: 50.0)
    show(host, rank(state="ended"))
    history = host / "history" / "ap-1-0.jsonl"
    history.write_text(json.dumps({"event": "ended", "reason": "drained", "code": 0}) + "\n")
    assert waiting.steps("r1") is None
    history.write_text(json.dumps({"event": "ended", "reason": reason, "code": 0}) + "\n")
    assert waiting.steps("r1")["step"] == 3


def test_the_last_event_is_found_behind_a_line_that_a_crash_cut_short(host):
    (host / "history" / "ap-1-0.jsonl").write_text('{"event": "step", "step": 7}\n{"event": "st')
    assert state.last_event("ap-1")["step"] == 7
    assert state.last_event("eu-1") == {}


def test_only_verified_data_and_whole_checkpoints_are_told(host):
    for name, mark in (("digits-aa", sha("{}")), ("digits-bb", "something else")):
        (host / "data" / name).mkdir()
        (host / "data" / name / "index.json").write_text("{}")
        (host / "data" / name / state.VERIFIED).write_text(mark)
    assert state.data() == {"digits-aa": sha("{}")}
    manifest = {"step": 20, "files": {"state.json": {"bytes": 5, "sha256": "x"}}}
    for step, text in ((20, json.dumps(manifest)), (30, "{")):
        folder = host / "checkpoints" / f"step-{step:08d}"
        folder.mkdir()
        (folder / "manifest.json").write_text(text)
    assert [(one["step"], one["bytes"]) for one in state.checkpoints()] == [(20, 5)]


def test_an_acknowledgement_counts_once_it_is_whole(host):
    ack = host / "acks" / "r2.json"
    assert waiting.acknowledged("r2") is None
    ack.write_text('{"revision": ')
    assert waiting.acknowledged("r2") is None
    ack.write_text('{"revision": "r2", "accepted": false, "reason": "why", "step": 4}')
    assert waiting.acknowledged("r2")["reason"] == "why"


def test_waiting_ends_at_its_deadline_and_says_what_was_missing(monkeypatch):
    monkeypatch.setattr(waiting, "journal", lambda: ["the last line"])
    with pytest.raises(waiting.NotReached, match=r"no step within 0 s") as caught:
        waiting.until(lambda: None, 0, "no step", check_unit=False)
    assert caught.value.journal == ["the last line"]
