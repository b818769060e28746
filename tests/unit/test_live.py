"""A watched file of settings: candidates, refusals with the reason, acknowledgements that are never stale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.config import Run, load_run, revision
from trainer.data.course import Progress
from trainer.settings.inforce import InForce
from trainer.settings.live import Acks, WatchedFile


class Place:
    """A run file on a host, and what watches it."""

    def __init__(self, folder: Path) -> None:
        self.file, self.acks = folder / "run.json", folder / "acks"
        self.write(Run().model_dump(mode="json"))
        self.inforce = InForce.at_start(load_run(self.file), 2, 100)
        self.watched = WatchedFile(self.file, lambda: load_run(self.file), 2, Acks(self.acks))

    def write(self, values: Any) -> None:
        temporary = self.file.with_suffix(".new")
        temporary.write_text(values if isinstance(values, str) else json.dumps(values))
        temporary.replace(self.file)

    def want(self, **changes: Any) -> None:
        self.write(Run().model_dump(mode="json") | changes)

    def look(self) -> int:
        return self.watched.look(self.inforce, 5)

    def said(self) -> dict[str, Any]:
        return {path.stem: json.loads(path.read_text()) for path in self.acks.glob("*.json")}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_settings_in_force_are_acknowledged_at_once_and_are_no_candidate(place: Place) -> None:
    assert place.look() == 0
    assert place.said()[place.inforce.revision]["accepted"] is True


def test_new_live_settings_are_a_candidate_until_they_are_taken(place: Place) -> None:
    place.want(clip_grad_norm=2.0)
    wanted = revision(load_run(place.file))
    assert [place.look(), place.look()] == [int(wanted, 16)] * 2
    run = place.watched.take(int(wanted, 16))
    place.inforce = place.inforce.changed(run, 2, 100, Progress())
    place.watched.in_force(place.inforce, 6)
    assert place.look() == 0
    assert place.said() == {wanted: {"revision": wanted, "accepted": True, "step": 6, "reason": ""}}


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"seed": 5}, "seed cannot change while the run trains"),
        ({"surprise": 1}, "surprise is not a known field"),
        ({"accumulation": {"accum_steps": 0}}, "accumulation.accum_steps"),
        ({"accumulation": {"global_batch": 33, "relation": "exact"}}, "does not divide"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason_and_nothing_changes(
    place: Place, change: dict[str, Any], reason: str
) -> None:
    place.want(**change)
    assert place.look() == 0
    (said,) = place.said().values()
    assert said["accepted"] is False
    assert reason in said["reason"]


@pytest.mark.parametrize("text", ["{", "[]", "", "\x00"])
def test_a_file_that_is_no_run_is_refused(place: Place, text: str) -> None:
    place.look()
    place.write(text)
    assert place.look() == 0


def test_a_file_that_is_gone_wants_nothing(place: Place) -> None:
    place.look()
    place.file.unlink()
    assert place.look() == 0


def test_going_back_before_the_others_came_along_withdraws_the_candidate(place: Place) -> None:
    place.want(clip_grad_norm=2.0)
    assert place.look() != 0
    place.want()
    assert place.look() == 0


def test_a_return_to_an_earlier_revision_is_acknowledged_anew(place: Place) -> None:
    place.look()
    first = place.inforce.revision
    acks = Acks(place.acks)
    acks.accepted("bbbbbbbbbbbb", 7)
    assert first not in place.said()
    acks.accepted(first, 9)
    assert place.said()[first]["step"] == 9
