"""A history survives a kill at any byte, and is read back as it was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.errors import DataError
from trainer.records.events import KINDS, Ended, Settings, Started, Step, decode, encode, read_digest
from trainer.records.history import History, history_path, read_histories
from trainer.records.status import Status, StatusFile, parse_status

STARTED = Started(world=1, run="t", revision="r", accum_steps=4, global_batch=32)


def step(number: int) -> Step:
    return Step(
        step=number, epoch=0, start=8 * number - 8, stop=8 * number, read=((8 * number - 8, 8 * number),), loss=0.5
    )


def write(path: Path, *events: object, host: str = "a") -> None:
    with History(path, host, 0, clock=iter(range(1000)).__next__) as history:
        for event in events:
            history.write(event)  # type: ignore[arg-type]


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    settings = Settings(step=1, revision="cafe", before={"accumulation.accum_steps": 4}, after={"x": None})
    events = [STARTED, step(1), settings, Ended(reason="finished", step=1, code=0)]
    write(history_path(tmp_path, "a", 0), *events)
    assert [e.event for e in read_histories(tmp_path).entries] == events


def test_a_line_carries_who_when_and_what(tmp_path: Path) -> None:
    write(tmp_path / "h.jsonl", step(1))
    line = json.loads((tmp_path / "h.jsonl").read_text())
    assert line == {
        "t": 0,
        "host": "a",
        "rank": 0,
        "event": "step",
        "step": 1,
        "epoch": 0,
        "start": 0,
        "stop": 8,
        "read": [[0, 8]],
        "loss": 0.5,
    }


def test_a_loss_that_is_not_finite_stays_readable_json(tmp_path: Path) -> None:
    write(tmp_path / "h.jsonl", Step(step=1, epoch=0, start=0, stop=8, read=(), loss=float("nan")))
    assert read_histories(tmp_path).entries[0].event.loss is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_history_torn_by_a_kill_is_read_and_goes_on(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "h.jsonl"
    write(path, STARTED, step(1), step(2))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    torn = read_histories(tmp_path)
    assert [e.event for e in torn.entries][:2] == [STARTED, step(1)]
    write(path, STARTED, step(2))
    again = read_histories(tmp_path)
    assert [e.event for e in again.entries][-2:] == [STARTED, step(2)]
    assert not again.damaged
    assert len(again.torn) == (cut > 1)  # a cut of 1 takes the line's end only: the event is whole


def test_a_line_damaged_in_the_middle_is_told(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    write(path, STARTED, step(1), step(2))
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1][:20], *lines[2:]]))
    assert read_histories(tmp_path).damaged == (f"{path}:2",)


def test_a_line_of_endless_brackets_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    write(path, STARTED, step(1), step(2))
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b"[" * 200_000, *lines[2:]]))
    assert read_histories(tmp_path).damaged == (f"{path}:2",)


def test_two_copies_of_a_history_count_once(tmp_path: Path) -> None:
    write(tmp_path / "early" / "a-0.jsonl", STARTED, step(1))
    write(tmp_path / "late" / "a-0.jsonl", STARTED, step(1), step(2))
    write(tmp_path / "late" / "b-0.jsonl", STARTED, step(1), host="b")
    entries = read_histories(tmp_path / "early", tmp_path / "late").entries
    assert [e.event for e in entries if e.host == "a"] == [STARTED, step(1), step(2)]
    assert len(entries) == 5


def test_a_folder_that_is_not_there_is_an_error_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        read_histories(tmp_path / "nowhere")


def test_an_event_of_a_newer_version_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text('{"t": 1, "host": "a", "rank": 0, "event": "teleported", "to": 3}\n')
    histories = read_histories(tmp_path)
    assert (histories.entries, histories.damaged) == ((), ())


def test_every_kind_says_when_a_field_is_missing() -> None:
    for name in KINDS:
        with pytest.raises(KeyError):
            decode(name, {})


@given(st.sets(st.integers(0, 60)))
def test_a_digest_depends_on_the_positions_and_not_on_how_they_are_cut(positions: set[int]) -> None:
    single = [(p, p + 1) for p in positions]
    runs: list[tuple[int, int]] = []
    for p in sorted(positions):
        runs = [*runs[:-1], (runs[-1][0], p + 1)] if runs and runs[-1][1] == p else [*runs, (p, p + 1)]
    assert read_digest(single) == read_digest(runs) < 2**32
    assert read_digest([*runs, (100, 101)]) != read_digest(runs)


@given(st.lists(st.sampled_from(["loss", "lr", "scale"]), unique=True))
def test_encoding_and_decoding_lose_nothing(present: list[str]) -> None:
    event = Step(step=1, epoch=0, start=0, stop=8, read=((0, 8),), **dict.fromkeys(present, 0.25))  # type: ignore[arg-type]
    assert decode("step", json.loads(json.dumps(encode(event)))) == event


def test_status_is_replaced_at_most_so_often_and_always_when_asked(tmp_path: Path) -> None:
    now = [0.0]
    file = StatusFile(tmp_path, "a", 0, every_s=0.5, clock=lambda: now[0])

    def shown(number: int, *, at_once: bool = False) -> int:
        file.write(Status(host="a", rank=0, t=0.0, step=number), now=at_once)
        return parse_status(file.path.read_text()).step

    assert shown(1) == 1
    now[0] = 0.4
    assert shown(2) == 1
    assert shown(3, at_once=True) == 3
    now[0] = 1.0
    assert shown(4) == 4
    assert [p.name for p in file.path.parent.iterdir()] == ["a-0.json"]
