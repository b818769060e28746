"""What can happen to a member. Times, where one matters, have been judged before (membership/proposing.py)."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.data.committed import Contribution, Terms
from trainer.data.ledger import Ledger
from trainer.membership.board import Board


@dataclass(frozen=True)
class Take:
    """The training thread is free: give it the next window, if there is one."""


@dataclass(frozen=True)
class Summed:
    """Window `number` has been accumulated: `weight` valid tokens or samples."""

    number: int
    weight: float


@dataclass(frozen=True)
class Offer:
    """The schedule wants a step now: what has been summed goes into the exchange, or nothing if there is nothing."""

    discount: float = 1.0
    found_inf: bool = False
    lr: float = 0.0
    speed: float = 0.0


@dataclass(frozen=True)
class Reduced:
    """The reduce has given its sums on this member. The headers of all came with them, sorted by member."""

    generation: int
    step: int
    contributions: tuple[Contribution, ...]


@dataclass(frozen=True)
class Second:
    """The second exchange: `member` holds the result of `step`. An event, and a message between members."""

    generation: int
    step: int
    member: str


@dataclass(frozen=True)
class BoardSeen:
    """The store changed, or was looked at. An older board than the last is ignored."""

    board: Board


@dataclass(frozen=True)
class BreakOff:
    """A member of the generation is missed, or the exchange is over its deadline: leave the generation."""


@dataclass(frozen=True)
class Remind:
    """Some time has passed: say again what may have been lost."""


@dataclass(frozen=True)
class StateArrived:
    """A state was fetched (or loaded) as a whole; `ledger` is its ledger."""

    ledger: Ledger


@dataclass(frozen=True)
class Accepts:
    """The desired settings have been checked here and can be taken up."""

    terms: Terms


@dataclass(frozen=True)
class Expired:
    """These absent members are over the bound of their loans, by the clock of this one. Replaces the last such set."""

    members: frozenset[str]


@dataclass(frozen=True)
class Leave:
    """Go after the next commit, handing back what is not read (SIGTERM, spot notice, removed from the inventory)."""


Event = (
    Take | Summed | Offer | Reduced | Second | BoardSeen | BreakOff | Remind | StateArrived | Accepts | Expired | Leave
)
