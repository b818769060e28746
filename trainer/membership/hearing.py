"""Who hears whom, and which set of members should train together. Pure.

Each member tells its row, whom it hears, with its heartbeat and passes on the rows it knows, so that one that is cut
off in one direction only is not chosen: two members can work together if each hears the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from trainer.membership.board import Members


@dataclass(frozen=True)
class Row:
    """Whom `member` hears. A higher `number` replaces a lower; `full`: it has the state; `leaving`: it wants to go."""

    member: str
    number: int
    hears: Members
    full: bool = False
    leaving: bool = False


Rows = Mapping[str, Row]


def merged(rows: Rows, more: Iterable[Row]) -> dict[str, Row]:
    """The newest row of each."""
    out = dict(rows)
    for row in more:
        if row.member not in out or out[row.member].number < row.number:
            out[row.member] = row
    return out


def both_ways(rows: Rows, a: str, b: str) -> bool:
    """Whether `a` and `b` hear each other."""
    return a == b or (a in rows and b in rows and b in rows[a].hears and a in rows[b].hears)


def connected(rows: Rows, members: Iterable[str]) -> bool:
    """Whether all of them hear each other."""
    return all(both_ways(rows, a, b) for a, b in combinations(sorted(members), 2))


def best_set(rows: Rows, active: Members, me: str) -> Members:
    """The set that should train, as everybody with the same rows finds it, among those of whom `me` knows.

    With someone of `active` that has the state, if there is one; then the largest; then the one that changes least;
    then by name. Up to 12 members all sets are tried, beyond that they are added one by one.
    """
    known = sorted(m for m in rows if not rows[m].leaving and (m == me or both_ways(rows, m, me) or _heard_by(rows, m)))
    sets = _all_sets(rows, known) if len(known) <= 12 else _grown_sets(rows, known, active)
    return max(sets, key=lambda s: _rank(rows, s, active), default=frozenset())


def _heard_by(rows: Rows, member: str) -> bool:
    """Somebody works with it: its row is not the last word of the dead."""
    return any(both_ways(rows, member, other) for other in rows if other != member)


def _rank(rows: Rows, some: Members, active: Members) -> tuple[bool, int, int, tuple[int, ...]]:
    state = any(rows[m].full and (m in active or not active) for m in some)
    order = sorted(rows)
    return state, len(some), len(some & active), tuple(-order.index(m) for m in sorted(some))


def _all_sets(rows: Rows, known: list[str]) -> list[Members]:
    sets: list[Members] = [frozenset()]
    for m in known:
        sets += [s | {m} for s in sets if all(both_ways(rows, m, x) for x in s)]
    return [s for s in sets if s]


def _grown_sets(rows: Rows, known: list[str], active: Members) -> list[Members]:
    sets = []
    for first in known:
        grown = {first}
        for m in sorted(known, key=lambda x: (x not in active, x)):
            if all(both_ways(rows, m, x) for x in grown):
                grown.add(m)
        sets.append(frozenset(grown))
    return sets
