"""A case as legs: from one start of the trainer to its next stop, each with its number of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.contracts.adapter.data import Entry, StreamCourse
from tests.contracts.adapter.settings import run_of, with_steps
from trainer.config import Run
from trainer.data.course import Course, EpochCourse, Progress
from trainer.data.order import Order
from trainer.drain import Drain
from trainer.settings.inforce import InForce


@dataclass(frozen=True)
class Leg:
    """stop_after: windows of the whole case after which all stop in an orderly way; killed_at: (window, micro-batch of
    replica 0 in this leg) at which all processes end at once."""

    world: int
    stop_after: int | None = None
    killed_at: tuple[int, int] | None = None


def legs_of(given: Mapping[str, Any]) -> list[Leg]:
    if "world_phases" in given:
        legs, windows = [], 0
        for phase in given["world_phases"]:
            windows += phase["windows"]
            legs.append(Leg(phase["world"], windows))
        return [*legs[:-1], Leg(legs[-1].world)]
    world = len(given["stream"]["replicas"])
    checkpoint = given.get("checkpoint") or {}
    if "after_optimizer_step" in checkpoint:
        return [Leg(world, checkpoint["after_optimizer_step"]), Leg(world)]
    if "after_micro_batch" in checkpoint:
        return [Leg(world, killed_at=_place(given, checkpoint["after_micro_batch"])), Leg(world)]
    return [Leg(world)]


def _place(given: Mapping[str, Any], micro_batches: int) -> tuple[int, int]:
    """The window in which replica 0 has done so many micro-batches, counted from the start."""
    course, done = course_of(given)[0], 0
    run, at, windows = run_of(given), Progress(), 0
    changes = phase_changes(given)
    while (window := course.next(at, run.accumulation, len(given["stream"]["replicas"]))) is not None:
        done += len(course.share(window, run.accumulation, len(given["stream"]["replicas"]), 0))
        if done > micro_batches:
            return windows, micro_batches
        at, windows = at.after(window), windows + 1
        if windows in changes:
            run = with_steps(run, changes[windows])
    return windows, micro_batches


def course_of(given: Mapping[str, Any]) -> tuple[Course, list[Entry]]:
    """The course, and the entries that its ids name."""
    if "order" in given:
        order = _Given(given["order"])
        samples = max(given["order"]) + 1
        return EpochCourse(order, 1), [Entry(sample) for sample in range(samples)]
    stream = StreamCourse.of(given)
    return stream, stream.entries


class _Given(Order):
    """The order that a case prescribes."""

    def __init__(self, ids: list[int]) -> None:
        self.samples, self._ids = len(ids), ids

    def ids(self, epoch: int, positions: range) -> list[int]:
        return self._ids[positions.start : positions.stop]


def phase_changes(given: Mapping[str, Any]) -> dict[int, int]:
    """Windows done -> micro-batches per window from then on."""
    found, windows = {}, 0
    for phase in given.get("accumulation", {}).get("phases") or ():
        found[windows] = phase["steps"]
        windows += phase["windows"]
    found.pop(0, None)
    return found


class Script:
    """A case's `Desired`: new settings at their windows, and the wish to stop after the last window of a leg."""

    def __init__(self, run: Run, windows_done: int, changes: Mapping[int, int], leg: Leg, drain: Drain) -> None:
        self._run, self._window, self._changes, self._leg, self._drain = run, windows_done, changes, leg, drain
        self._next: Run | None = None

    def look(self, inforce: InForce, step: int) -> int:
        self._window += 1  # windows done when the one that asks is over
        if self._leg.killed_at is not None and self._window - 1 == self._leg.killed_at[0]:
            raise Killed
        if self._window == self._leg.stop_after:
            self._drain.ask("the case stops here")
        self._next = with_steps(inforce.run, self._changes[self._window]) if self._window in self._changes else None
        return self._window if self._next is not None else 0

    def take(self, revision: int) -> Run:
        assert self._next is not None
        return self._next

    def in_force(self, inforce: InForce, step: int) -> None:
        pass


class Killed(BaseException):
    """The process ends here, in the middle of a window, without a chance to save anything."""
