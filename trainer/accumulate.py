"""Micro-batches -> contribution: the sums of one replica's share of a window. The same for every strategy.

Losses are summed, never averaged; the one division, by the total weight of all replicas, is made after the exchange
(update.py). Nothing in here waits for the device until the window's end, where four numbers are read at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.compute.replica import Gradients, Replica, samples_of
from trainer.models.scored import Batch, Scored


@dataclass(frozen=True)
class Contribution:
    """What one replica offers to the others for a window.

    gradients: sums, without loss scale, float32 or wider, in the order of `Replica.parameters`; None: not used here.
    weight: scored tokens or samples. norm: 2-norm of the sums; not finite where any of them is not.
    """

    gradients: Gradients
    buffers: tuple[Tensor, ...]
    loss_sum: float
    weight: float
    correct: float | None
    samples: int
    norm: float

    @property
    def finite(self) -> bool:
        return math.isfinite(self.norm)


@dataclass
class Tally:
    """Running sums that stay on the device."""

    device: torch.device
    loss_sum: Tensor | None = None
    weight: Tensor | None = None
    correct: Tensor | None = None

    def add(self, scored: Scored) -> None:
        self.loss_sum = self._sum(self.loss_sum, scored.loss_sum)
        self.weight = self._sum(self.weight, scored.weight)
        if scored.correct is not None:
            self.correct = self._sum(self.correct, scored.correct)

    def _sum(self, total: Tensor | None, value: Tensor) -> Tensor:
        value = value.detach().to(self.device, torch.float64)
        return value if total is None else total + value


def accumulate(replica: Replica, batches: Iterable[Batch], scale: float = 1.0) -> Contribution:
    """Forward and backward over `batches` (perhaps none), with the loss multiplied by `scale`.

    Leaves no gradient on the parameters.
    """
    tally = Tally(replica.devices[0])
    samples = 0
    for batch in batches:
        samples += samples_of(batch)
        for module, part in replica.split(batch):
            scored = replica.forward(module, part)
            backward(scored, scale)
            tally.add(scored)
    gradients = replica.take_gradients()
    unscale(gradients, scale)
    return contribution(gradients, replica.statistics, tally, samples)


def backward(scored: Scored, scale: float) -> None:
    """Add this micro-batch's gradient to the sums."""
    if scored.loss_sum.requires_grad:
        (scored.loss_sum * scale if scale != 1.0 else scored.loss_sum).backward()


def unscale(gradients: Gradients, scale: float) -> None:
    """Take the loss scale out of the window's sums, in place, once."""
    present = [g for g in gradients if g is not None]
    if scale != 1.0 and present:
        torch._foreach_mul_(present, 1.0 / scale)


def norm_of(gradients: Gradients) -> Tensor | None:
    """2-norm over all gradients together, on their device; None where there are none."""
    present = [g for g in gradients if g is not None]
    if not present:
        return None
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(present, 2.0)))


def contribution(gradients: Gradients, buffers: tuple[Tensor, ...], tally: Tally, samples: int) -> Contribution:
    """Read the window's four numbers; the only point where the host waits for the device."""
    norm = norm_of(gradients)
    zero = torch.zeros((), dtype=torch.float64, device=tally.device)
    numbers = [zero if n is None else n.to(torch.float64) for n in (tally.loss_sum, tally.weight, tally.correct, norm)]
    loss_sum, weight, correct, length = torch.stack(numbers).tolist()
    return Contribution(
        gradients, buffers, loss_sum, weight, None if tally.correct is None else correct, samples, length
    )
