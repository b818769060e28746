"""Which window comes next, and which of its micro-batches are ours. No torch; what was read is `Progress`.

Windows are consecutive chunks of the epoch's order. They never cross the end of an epoch: the last one is shorter and
steps with its own divisor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from trainer.batching import Window, deal, global_batch
from trainer.config import Accumulation
from trainer.data.order import Order


@dataclass(frozen=True)
class Progress:
    """How far a run is. `windows` counts skipped ones too; `step` and `samples` only what entered the parameters."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    windows: int = 0
    samples: int = 0
    nonfinite_in_a_row: int = 0
    skipped: int = 0

    def after(self, window: Window) -> Progress:
        """The window is behind us, whatever became of it."""
        return replace(self, epoch=window.epoch, position=window.stop, windows=self.windows + 1)


class Course(Protocol):
    """The samples of a run, in the order and the portions in which they are used."""

    samples: int  # of one epoch

    def next(self, at: Progress, accumulation: Accumulation, replicas: int) -> Window | None:
        """The window after `at`; None when the last epoch is used up."""

    def share(self, window: Window, accumulation: Accumulation, replicas: int, replica: int) -> Sequence[range]:
        """Positions of each micro-batch that `replica` takes; perhaps none."""

    def ids(self, epoch: int, positions: range) -> Sequence[int]:
        """Sample numbers at `positions`."""


class EpochCourse:
    """`epochs` passes over `order`, windows dealt out to the replicas micro-batch by micro-batch."""

    def __init__(self, order: Order, epochs: int) -> None:
        self.samples = order.samples
        self._order = order
        self._epochs = epochs

    def next(self, at: Progress, accumulation: Accumulation, replicas: int) -> Window | None:
        epoch, start = (at.epoch, at.position) if at.position < self.samples else (at.epoch + 1, 0)
        if epoch >= self._epochs or self.samples == 0:
            return None
        return Window(epoch, start, min(start + global_batch(accumulation, replicas), self.samples))

    def share(self, window: Window, accumulation: Accumulation, replicas: int, replica: int) -> Sequence[range]:
        return deal(window, accumulation.micro_batch, replicas, replica)

    def ids(self, epoch: int, positions: range) -> Sequence[int]:
        return self._order.ids(epoch, positions)
