"""A perceptron with hidden layers, for data that fits into one vector a sample."""

from __future__ import annotations

import itertools

from torch import nn

from trainer.models.scored import Batch, Scored, score, take


class Mlp(nn.Module):
    """`x` [samples, ...] flattened to `inputs`, `layers` hidden layers of `hidden` with ReLU, `classes` logits."""

    def __init__(self, inputs: int = 64, hidden: int = 128, layers: int = 1, classes: int = 10) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * layers]
        blocks = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, batch: Batch) -> Scored:
        x = take(batch, "x", "mlp").flatten(1).to(self.head.weight.dtype)
        return score(self.head(self.body(x)), take(batch, "y", "mlp"))
