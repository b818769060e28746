"""When nobody is left who has the active generation's state: all stopped, or all crashed. Pure; times come in.

Every host says what it could start from; when all of the inventory have, or after a while, or when the operator says
go, the best of these is declared by compare-and-put. Who comes later gives up what it has beyond that step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainer.membership.board import Announcement, Board
from trainer.membership.hearing import Rows, both_ways


@dataclass(frozen=True)
class RestartPolicy:
    """`hosts`: the inventory."""

    hosts: frozenset[str]
    silent_s: float = 10.0  # nobody with the state has been heard for so long; a first start does not wait
    wait_s: float = 60.0  # then those who have announced are enough


@dataclass(frozen=True)
class Waiting:
    """Since when nobody with the state has been heard. One per member; it changes only in `consider`."""

    since_s: float | None = None


@dataclass(frozen=True)
class Announce:
    """Leave the generation, if there is one, then put this into the store."""

    announcement: Announcement


@dataclass(frozen=True)
class Declare:
    """Compare-and-put of the new incarnation. `reason` goes into the history."""

    number: int
    step: int
    digest: str
    seen: int
    reason: str


def somebody_has_the_state(me: str, board: Board, rows: Rows) -> bool:
    """Whether the run can go on without a restart, as far as `me` hears, itself included and others at second hand."""
    heard = {m for m in rows if both_ways(rows, me, m)}
    near = heard | {x for m in heard for x in rows[m].hears if x in rows}
    may_begin = board.members or ({r.member for r in rows.values() if r.full} if board.active else set())
    return any(m in may_begin and rows[m].full for m in near)


def consider(
    waiting: Waiting,
    me: str,
    mine: Announcement,
    board: Board,
    rows: Rows,
    now_s: float,
    policy: RestartPolicy,
    operator_says_go: bool = False,
) -> tuple[Waiting, Announce | Declare | None]:
    """Called at each heartbeat. `mine`: the best state that this host has, in memory or on disk."""
    if somebody_has_the_state(me, board, rows):
        return Waiting(), None
    if waiting.since_s is None:
        waiting = replace(waiting, since_s=now_s)
    begun_s = waiting.since_s if waiting.since_s is not None else now_s
    waited_s = now_s - begun_s
    if board.active and waited_s < policy.silent_s and not operator_says_go:
        return waiting, None
    if board.announced.get(mine.host) != mine:
        return waiting, Announce(mine)
    missing = sorted(policy.hosts - board.announced.keys())
    if missing and waited_s < policy.wait_s and not operator_says_go:
        return waiting, None
    best = max(board.announced.values(), key=lambda a: (a.incarnation, a.step, a.digest))
    if best.step < 0:
        return waiting, None
    why = f"without {', '.join(missing)}" if missing else "all hosts have announced"
    number = board.incarnation.number + 1
    return waiting, Declare(number, best.step, best.digest, board.active, f"{why}; {best.host} has step {best.step}")
