"""When a member breaks off and what it proposes: from any state, with a majority connected, a commit follows.

Nothing here can do harm: the commit rule allows any proposal at any time. What it decides is how soon work goes on, and
that members do not propose against each other. Pure; times are seconds of any steady clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainer.membership.board import Board, Members
from trainer.membership.hearing import Rows, best_set, both_ways


@dataclass(frozen=True)
class ProposingPolicy:
    """How long to wait for others to do the same thing first."""

    stagger_s: float = 0.4  # times the rank: a write to the store and its echo over an ocean
    retry_s: float = 2.0  # a proposal that is not active by then is replaced
    hosts: int = 1  # of the inventory: a new incarnation begins with all of them,
    start_s: float = 15.0  # or with those who are there after so long
    grow_s: float = 1.0  # least time between generations when nothing is broken: those who come may come together


@dataclass(frozen=True)
class Standing:
    """What the proposer needs to know of its own member. `stuck`: its exchange is over its deadline."""

    me: str
    inside: bool  # takes part in the active generation
    stuck: bool = False


@dataclass(frozen=True)
class Proposer:
    """What was seen when. One per member; it changes only in `decide`."""

    newest: int = -1
    newest_since_s: float = 0.0
    active: int = -1
    active_since_s: float = 0.0
    wish: Members = frozenset()
    wish_since_s: float = 0.0


@dataclass(frozen=True)
class Decision:
    """`break_off`: leave the generation now. `propose`: put this set under the next number. `reason` for both."""

    break_off: bool = False
    propose: Members | None = None
    reason: str = ""


def decide(
    p: Proposer, standing: Standing, board: Board, rows: Rows, now_s: float, policy: ProposingPolicy
) -> tuple[Proposer, Decision]:
    """Called at each heartbeat and at each change of the board."""
    best = best_set(rows, board.members, standing.me)
    p = _noticed(p, board, best, now_s)
    missed = sorted(m for m in board.members if not both_ways(rows, standing.me, m))
    break_off = standing.inside and (bool(missed) or standing.stuck)
    lost = standing.me in board.members and not standing.inside
    broken = break_off or lost or not board.members
    if standing.me not in best:
        return p, Decision(break_off, None, f"misses {missed}" if missed else "")
    reason = _reason(best, board.members, missed, standing)
    if not reason or _under_way(p, board, best, now_s, policy):
        return p, Decision(break_off, None, reason)
    if not board.members and len(best) < policy.hosts and now_s < p.active_since_s + policy.start_s:
        return p, Decision(False, None, f"{len(best)} of {policy.hosts} hosts are here")
    due_s = p.wish_since_s if broken else max(p.wish_since_s, p.active_since_s + policy.grow_s)
    if now_s < due_s + policy.stagger_s * sorted(best).index(standing.me):
        return p, Decision(break_off, None, reason)
    return replace(p, wish_since_s=now_s), Decision(break_off, best, reason)


def _noticed(p: Proposer, board: Board, best: Members, now_s: float) -> Proposer:
    if board.newest != p.newest:
        p = replace(p, newest=board.newest, newest_since_s=now_s)
    if board.active != p.active:
        p = replace(p, active=board.active, active_since_s=now_s, wish_since_s=now_s)
    return p if best == p.wish else replace(p, wish=best, wish_since_s=now_s)


def _reason(best: Members, active: Members, missed: list[str], standing: Standing) -> str:
    """Why another generation is needed, or nothing."""
    if missed and standing.me in active:
        return f"misses {', '.join(missed)}"
    if gone := sorted(active - best):
        return f"without {', '.join(gone)}"
    if came := sorted(best - active):
        return f"with {', '.join(came)}"
    if standing.stuck:
        return "the exchange is over its deadline"
    return "" if standing.inside else "has left the generation"


def _under_way(p: Proposer, board: Board, best: Members, now_s: float, policy: ProposingPolicy) -> bool:
    """A newer proposal that can still become active, and is as good."""
    notes = board.notes_of(board.newest).values()
    fresh = board.newest > board.active and now_s < p.newest_since_s + policy.retry_s
    return fresh and board.proposals[board.newest] == best and all(n.seen == board.active for n in notes)
