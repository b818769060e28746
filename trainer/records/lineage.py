"""Which windows are in the surviving parameters: a run's starts put in order, and the chain that leads to its end.

A *session* is one start of one rank; an *incarnation* is the sessions of all ranks that started together. Each begins
at a checkpoint that an earlier one wrote, its parent. What an incarnation did beyond the checkpoint that its child
began from is void: it is in no parameters that anybody still has. The surviving chain is followed from the last
incarnation back to step 0. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainer.records.events import Event, Resumed, Started, WindowRead
from trainer.records.history import Entry, Histories

Place = tuple[int, int, int]  # (epoch, start, how often this rank had been there before) of a window


@dataclass(frozen=True)
class Session:
    """One start of one rank, and what it wrote until its next start."""

    host: str
    rank: int
    t: float
    started: Started
    entries: tuple[Entry, ...]

    @property
    def resumed(self) -> Resumed | None:
        return next((e.event for e in self.entries if isinstance(e.event, Resumed)), None)


@dataclass(frozen=True)
class Incarnation:
    """Sessions that started together, by rank. `base`: where they began, None for step 0."""

    name: str
    world: int
    t: float
    sessions: Mapping[int, Session]
    base: Resumed | None

    def events(self, kind: type[Event]) -> Iterable[tuple[int, Event]]:
        """(rank, event) of each event of `kind`, rank by rank."""
        for rank, session in sorted(self.sessions.items()):
            yield from ((rank, e.event) for e in session.entries if isinstance(e.event, kind))


@dataclass(frozen=True)
class Executed:
    """One window as an incarnation executed it: what each rank wrote about it; who has no record of it is absent."""

    incarnation: Incarnation
    by_rank: Mapping[int, WindowRead]

    @property
    def window(self) -> WindowRead:
        return self.by_rank[min(self.by_rank)]


@dataclass(frozen=True)
class Lineage:
    """The surviving chain in order; `gaps`: what the histories do not tell about it."""

    chain: tuple[Executed, ...]
    gaps: tuple[str, ...] = ()


def sessions_of(entries: Iterable[Entry]) -> list[Session]:
    """Each rank's entries cut at its starts. What stands before the first start is left out."""
    parts: dict[tuple[str, int], list[list[Entry]]] = {}
    for entry in entries:
        starts = parts.setdefault((entry.host, entry.rank), [])
        if isinstance(entry.event, Started):
            starts.append([])
        if starts:
            starts[-1].append(entry)
    found = [_session(part) for starts in parts.values() for part in starts]
    return sorted(found, key=lambda session: session.t)


def incarnations_of(sessions: Sequence[Session]) -> list[Incarnation]:
    """Sessions put together by the name that they share; where none was given, by time, world and starting point."""
    groups: dict[str, list[Session]] = {}
    unnamed = 0
    current: list[Session] = []
    for session in sessions:
        name = session.started.incarnation
        if name is None:
            if not current or not _together(current, session):
                unnamed += 1
                current = groups.setdefault(f"start {unnamed}", [])
            current.append(session)
        else:
            groups.setdefault(name, []).append(session)
    found = [_incarnation(name, group) for name, group in groups.items()]
    return sorted(found, key=lambda incarnation: incarnation.t)


def executed_by(incarnation: Incarnation) -> list[Executed]:
    """The windows of one incarnation in order, whether they survived or not."""
    places: dict[Place, dict[int, WindowRead]] = {}
    for rank, event in incarnation.events(WindowRead):
        assert isinstance(event, WindowRead)
        before = 0
        while rank in places.get((event.epoch, event.start, before), {}):
            before += 1
        places.setdefault((event.epoch, event.start, before), {})[rank] = event
    return [Executed(incarnation, places[place]) for place in sorted(places)]


def surviving(histories: Histories) -> Lineage:
    """The chain of windows that led to the parameters at the end of the last incarnation."""
    incarnations = incarnations_of(sessions_of(histories.entries))
    lineages: list[Lineage] = []
    for index, incarnation in enumerate(incarnations):
        own = tuple(executed_by(incarnation))
        base = incarnation.base
        if base is None or not (base.step or base.epoch or base.position):
            lineages.append(Lineage(own))
            continue
        parent = _parent(base, incarnations[:index], lineages)
        if parent is None:
            gap = f"no history of the steps up to {base.step}, where {incarnation.name} began"
            lineages.append(Lineage(own, (gap,)))
        else:
            lineages.append(Lineage(_up_to(base, parent.chain) + own, parent.gaps))
    return lineages[-1] if lineages else Lineage(())


def _session(part: list[Entry]) -> Session:
    first = part[0]
    assert isinstance(first.event, Started)
    return Session(first.host, first.rank, first.t, first.event, tuple(part))


def _together(group: list[Session], session: Session) -> bool:
    first = group[0]
    return (
        session.started.world == first.started.world
        and session.started.run == first.started.run
        and session.rank not in {other.rank for other in group}
        and (session.resumed.step if session.resumed else 0) == (first.resumed.step if first.resumed else 0)
    )


def _incarnation(name: str, group: list[Session]) -> Incarnation:
    by_rank = {session.rank: session for session in group}
    first = by_rank[min(by_rank)]
    return Incarnation(name, first.started.world, min(s.t for s in group), by_rank, first.resumed)


def _parent(base: Resumed, earlier: Sequence[Incarnation], lineages: Sequence[Lineage]) -> Lineage | None:
    """The lineage that wrote the checkpoint: the one named in it, else the latest one that got as far."""
    for incarnation, lineage in zip(reversed(earlier), reversed(lineages), strict=True):
        reached = bool(lineage.chain) and lineage.chain[-1].window.step >= base.step
        if incarnation.name == base.lineage or (base.lineage is None and reached):
            return lineage
    return None


def _up_to(base: Resumed, chain: tuple[Executed, ...]) -> tuple[Executed, ...]:
    if base.epoch is None or base.position is None:
        return tuple(e for e in chain if e.window.step <= base.step)
    return tuple(e for e in chain if (e.window.epoch, e.window.stop) <= (base.epoch, base.position))
