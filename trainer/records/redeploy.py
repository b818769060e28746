"""What a change of settings cost a running trainer, from its history. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainer.records.events import Settings, Started, Step
from trainer.records.history import Histories
from trainer.records.lineage import incarnations_of, sessions_of, surviving
from trainer.records.verdict import Broken, Kept, Unknown, Verdict


@dataclass(frozen=True)
class Redeployed:
    """New settings `revision` are in force on `ranks` of `world` after `step`; the last rank wrote so at `t` (unix).

    steps_lost: steps made since the command that are in no surviving parameters, or numbers left out.
    restarts: starts of a trainer since the command.
    """

    revision: str
    step: int
    t: float
    ranks: int
    world: int
    steps_lost: int
    restarts: int


def redeployed(histories: Histories, since_t: float, until_t: float = math.inf) -> Redeployed | None:
    """The first change of settings at or after `since_t` (unix seconds, when the command was given); None: none was.

    What happens after `until_t` is not counted.
    """
    recent = [e for e in histories.entries if since_t <= e.t <= until_t]
    told = sorted((e for e in recent if isinstance(e.event, Settings)), key=lambda e: e.t)
    if not told:
        return None
    first = told[0].event
    assert isinstance(first, Settings)
    same = [e for e in told if isinstance(e.event, Settings) and e.event.revision == first.revision]
    worlds = [(e.t, e.event.world) for e in histories.entries if isinstance(e.event, Started) and e.t <= told[0].t]
    restarts = {(e.host, e.rank, e.t) for e in recent if isinstance(e.event, Started)}
    return Redeployed(
        first.revision,
        first.step,
        max(e.t for e in same),
        len({e.rank for e in same}),
        max(worlds)[1] if worlds else 0,
        _steps_lost(histories, since_t, until_t),
        len(restarts),
    )


@dataclass(frozen=True)
class NoStepLost:
    """A change of settings at or after `since_t` was taken up by all ranks, without restart, and lost no step."""

    since_t: float
    until_t: float = math.inf

    def judge(self, histories: Histories) -> Verdict:
        found = redeployed(histories, self.since_t, self.until_t)
        if found is None:
            return Unknown("no change of settings in that time")
        if found.restarts or found.steps_lost:
            return Broken(f"settings {found.revision}: {found.steps_lost} steps lost, {found.restarts} restarts")
        if found.ranks < found.world:
            return Broken(f"settings {found.revision}: in force on {found.ranks} of {found.world} ranks")
        return Kept(f"settings {found.revision} in force after step {found.step} on {found.ranks} ranks")


def _steps_lost(histories: Histories, since_t: float, until_t: float) -> int:
    """Steps of that time that did not survive, and step numbers that are missing between the surviving ones."""
    made: set[tuple[str, int]] = set()
    for incarnation in incarnations_of(sessions_of(histories.entries)):
        for session in incarnation.sessions.values():
            recent = (e.event for e in session.entries if since_t <= e.t <= until_t)
            made |= {(incarnation.name, event.step) for event in recent if isinstance(event, Step)}
    kept = {(e.incarnation.name, e.window.step) for e in surviving(histories).chain if isinstance(e.window, Step)}
    survived = sorted(step for name, step in made & kept)
    missing = survived[-1] - survived[0] + 1 - len(survived) if survived else 0
    return len(made - kept) + missing
