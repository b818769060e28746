"""What a member does, and is worth, while nobody can hear it: bounds, the discount for staleness, the end of a loan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class LocalBounds:
    """How far a member goes on by itself. What was allotted to it is a bound as well (Terms.ahead)."""

    seconds: float = 600.0
    windows: int = 64
    loan_s: float = 900.0  # then the others take its chunks back; more than `seconds`, so that it can hand its work in
    staleness: float = 0.1  # λ of the discount

    def __post_init__(self) -> None:
        if self.loan_s <= self.seconds:
            raise ValueError(f"loan_s = {self.loan_s:g} must be over seconds = {self.seconds:g}: work would be void")


@dataclass(frozen=True)
class GoOn:
    """Accumulate the next window."""


@dataclass(frozen=True)
class Pause:
    """Wait for the others. `reason` is said aloud."""

    reason: str


def local_mode(windows: int, since_s: float, now_s: float, bounds: LocalBounds) -> GoOn | Pause:
    """Whether a member that has been out of any generation since `since_s` sums another window."""
    if now_s - since_s >= bounds.seconds:
        return Pause(f"away for {now_s - since_s:.0f} s, the bound is {bounds.seconds:.0f} s")
    if windows >= bounds.windows:
        return Pause(f"{windows} windows summed while away, the bound is {bounds.windows}")
    return GoOn()


def discount(steps_behind: int, staleness: float) -> float:
    """Factor on vector and weight of sums whose parameters are `steps_behind` commits old: 1 / (1 + λ·s)."""
    if steps_behind < 0:
        raise ValueError(f"{steps_behind} steps behind: parameters cannot be newer than the step they are offered in")
    return 1.0 / (1.0 + staleness * steps_behind)


def expired(absent_since_s: Mapping[str, float], now_s: float, bounds: LocalBounds) -> frozenset[str]:
    """Absent members whose loan is over the bound, as this member's clock has it; all who count must agree (ledger)."""
    return frozenset(m for m, since in absent_since_s.items() if now_s - since >= bounds.loan_s)
