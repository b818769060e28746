"""The interface between the loop and the other replicas. A strategy implements `Exchange`, the loop knows no other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Protocol

from torch import Tensor

from trainer.accumulate import Contribution
from trainer.compute.replica import Gradients


@dataclass(frozen=True)
class Header:
    """What travels beside a replica's sums, as float64: all decisions are made from all headers, so all agree.

    norm: of this replica's sums. candidate: 48-bit revision of the settings it would take up next, 0 for none.
    read: 32 bits that stand for the positions it read (records.events.read_digest).
    """

    loss_sum: float
    weight: float
    correct: float  # nan: not counted
    samples: float
    norm: float
    stop: float = 0.0
    candidate: float = 0.0
    read: float = 0.0

    @classmethod
    def of(cls, mine: Contribution, *, stop: bool = False, candidate: int = 0, read: int = 0) -> Header:
        correct = math.nan if mine.correct is None else mine.correct
        return cls(
            mine.loss_sum, mine.weight, correct, mine.samples, mine.norm, float(stop), float(candidate), float(read)
        )

    def numbers(self) -> tuple[float, ...]:
        return astuple(self)

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> Header:
        return cls(*numbers)


HEADER_NUMBERS = len(fields(Header))


@dataclass(frozen=True)
class Total:
    """The sums of all replicas, the same on each of them.

    gradients: None where no replica used the parameter. buffers: means over the replicas, weighted by samples.
    """

    gradients: Gradients
    buffers: tuple[Tensor, ...]
    headers: tuple[Header, ...]

    @property
    def weight(self) -> float:
        return math.fsum(h.weight for h in self.headers)

    @property
    def samples(self) -> int:
        return int(sum(h.samples for h in self.headers))

    @property
    def loss(self) -> float | None:
        """Mean over everything scored in the window; None where nothing was."""
        return sum(h.loss_sum for h in self.headers) / self.weight if self.weight else None

    @property
    def finite(self) -> bool:
        """False where the gradient of any replica is not finite: then all skip the window."""
        return all(math.isfinite(h.norm) for h in self.headers)

    @property
    def stop(self) -> bool:
        """Some replica was asked to stop, so all stop after this window."""
        return any(h.stop for h in self.headers)

    @property
    def candidate(self) -> int:
        """The revision that every replica would take up; 0 as long as they do not all hold the same."""
        found = {int(h.candidate) for h in self.headers}
        return found.pop() if len(found) == 1 else 0


class Exchange(Protocol):
    """Replica `rank` of `world`. Every call but `send`, `receive` and `close` is made by all replicas in one order.

    A call raises ComeBack when a peer is lost; what was handed in is then as it was.
    """

    rank: int
    world: int

    def sum(self, mine: Contribution, header: Header) -> Total:
        """Add up all contributions. One round, whatever the number of micro-batches."""

    def gather(self, mine: bytes) -> list[bytes]:
        """What every replica handed in, by rank. For a few numbers or a little JSON."""

    def send(self, data: Tensor, to: int) -> None:
        """Give a uint8 tensor (on the CPU) to one other replica, which calls `receive` for the same length."""

    def receive(self, data: Tensor, source: int) -> None:
        """Fill `data` (uint8, CPU)."""

    def close(self) -> None: ...
