"""What a commit leaves behind: the record of one step, from which ledger and parameters can be replayed.

A record holds nothing but what travelled with the reduce, so whoever holds the result of a reduce holds its record, the
member that is still fetching the state included (docs/adr/0060).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter

from trainer.data.spans import Spans


def host_of(member: str) -> str:
    """A member is one life of a host's process, named HOST#LIFE: who has lost its memory is somebody else."""
    return member.partition("#")[0]


@dataclass(frozen=True)
class Terms:
    """The live settings that decide who reads what; `revision` names the whole set of settings they belong to."""

    revision: int
    global_batch: int  # samples per step over all hosts, whoever is here
    micro_batch: int
    ahead: int = 2  # windows that are allotted in advance to each member; bounds local mode as well
    elastic: bool = False  # windows in proportion to measured speed

    def __post_init__(self) -> None:
        if self.ahead < 2:
            raise ValueError(f"ahead = {self.ahead}: one window is on offer and one is being read, so at least 2")


@dataclass(frozen=True)
class Window:
    """One accumulation window of one member. `base`: committed steps in the parameters that it was summed on."""

    number: int
    read: Spans
    weight: float  # tokens or samples, before any discount
    base: int


@dataclass(frozen=True)
class Contribution:
    """The header that goes with a member's sums. Who is catching up takes part without counting: no windows."""

    member: str
    counting: bool = True
    windows: tuple[Window, ...] = ()
    discount: float = 1.0  # on vector and weight, for staleness
    claim: int | None = (
        None  # samples of its stock after `windows` that it may read before it learns the fate; None: all
    )
    speed: float = 0.0  # samples/s, measured
    accepts: Terms | None = None  # newest desired settings that it knows and can take up
    expired: tuple[str, ...] = ()  # absent members whose loan is over the bound, by its own clock
    found_inf: bool = False
    lr: float = 0.0
    leaving: bool = False  # takes no new work and goes after this step

    @property
    def weight(self) -> float:
        """What the division by the total weight sees."""
        return self.discount * sum(w.weight for w in self.windows)


@dataclass(frozen=True)
class Record:
    """One committed step. Contributions are sorted by member, so that equal steps are equal records."""

    step: int  # committed before this one
    generation: int
    contributions: tuple[Contribution, ...]

    @property
    def weight(self) -> float:
        return sum(c.weight for c in self.contributions)

    @property
    def moves(self) -> bool:
        """Whether the optimizer makes a step: something was summed and no part of it overflowed."""
        return self.weight > 0 and not any(c.found_inf for c in self.contributions)

    @property
    def counting(self) -> tuple[str, ...]:
        """Members that have the state and go on: those who can be given work."""
        return tuple(c.member for c in self.contributions if c.counting and not c.leaving)


@cache
def _json() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def to_json(record: Record) -> bytes:
    """Canonical: equal records give equal bytes."""
    return _json().dump_json(record)


def from_json(text: bytes) -> Record:
    """Raises pydantic.ValidationError on anything that is not a record."""
    return _json().validate_json(text)


def chain(digest: str, record: Record) -> str:
    """The digest of a history with `record` added: two histories are equal if and only if their digests are."""
    return hashlib.sha256(digest.encode() + to_json(record)).hexdigest()[:32]
