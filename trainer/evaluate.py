"""Loss and accuracy on the held-out split, each replica on its share; with the averaged weights if there are any."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from trainer.checkpoint.state import TrainState
from trainer.compute.replica import Replica
from trainer.sync.exchange import Exchange


@dataclass(frozen=True)
class Evaluation:
    """loss: mean over everything scored. accuracy: share in [0, 1]; None where the model does not count."""

    loss: float
    accuracy: float | None


class Evaluator(Protocol):
    def __call__(self, state: TrainState, replica: Replica, exchange: Exchange) -> Evaluation | None:
        """Called by all replicas at the same step; all get the same. None: nothing is held out."""


class HeldOut(Protocol):
    def __len__(self) -> int: ...

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]: ...


class OnHeldOut:
    """Evaluate on `dataset`, `batch` samples at a time. `beat` is called after each."""

    def __init__(self, dataset: HeldOut, batch: int, beat: Callable[[], None] = lambda: None) -> None:
        self._dataset, self._batch, self._beat = dataset, batch, beat

    def __call__(self, state: TrainState, replica: Replica, exchange: Exchange) -> Evaluation | None:
        if len(self._dataset) == 0:
            return None
        weights = state.average.in_place() if state.average is not None else nullcontext()
        was_training = replica.model.training
        replica.model.eval()
        try:
            with weights, torch.no_grad():
                mine = self._sums(replica, exchange)
        finally:
            replica.model.train(was_training)
        sums = [json.loads(text) for text in exchange.gather(json.dumps(mine).encode())]
        loss_sum, weight, correct = (sum(column) for column in zip(*sums, strict=True))
        if not weight:
            return None
        return Evaluation(loss_sum / weight, correct / weight if correct >= 0 else None)

    def _sums(self, replica: Replica, exchange: Exchange) -> list[float]:
        """Loss, weight, correct over our share; correct is negative where the model does not count."""
        starts = range(0, len(self._dataset), self._batch)
        totals = torch.zeros(3, dtype=torch.float64, device=replica.devices[0])
        for start in starts[exchange.rank :: exchange.world]:
            ids = range(start, min(start + self._batch, len(self._dataset)))
            batch = {k: v.to(replica.devices[0]) for k, v in self._dataset.batch(ids).items()}
            scored = replica.forward(replica.model, batch)
            correct = -scored.weight if scored.correct is None else scored.correct
            totals += torch.stack([scored.loss_sum.double(), scored.weight.double(), correct.double()])
            self._beat()
        found: list[float] = totals.tolist()
        return found
