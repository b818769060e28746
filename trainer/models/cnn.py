"""A small residual network for small images (He et al. 2015, arXiv:1512.03385), without batch statistics.

Group normalisation (arXiv:1803.08494) looks at one sample at a time, so the result does not depend on how a window is
cut into micro-batches.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from trainer.models.scored import Batch, Scored, score, take

QUARTERS = 2  # the head sees the average of each quarter of the image: where a stroke is matters as well as that it is


class Residual(nn.Module):
    """x [samples, width, h, w] -> the same shape: two convolutions beside the identity."""

    def __init__(self, width: int, groups: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, width), nn.GroupNorm(groups, width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv1(functional.relu(self.norm1(x)))
        return x + self.conv2(functional.relu(self.norm2(inner)))


class Cnn(nn.Module):
    """Images `x` [samples, h, w] or [samples, channels, h, w] -> `classes` logits; each block halves the image."""

    def __init__(self, channels: int = 1, width: int = 32, blocks: int = 2, classes: int = 10, groups: int = 4) -> None:
        super().__init__()
        self.channels = channels
        self.stem = nn.Conv2d(channels, width, 3, padding=1)
        self.blocks = nn.ModuleList(Residual(width, groups) for _ in range(blocks))
        self.norm = nn.GroupNorm(groups, width)
        self.head = nn.Linear(width * QUARTERS**2, classes)

    def forward(self, batch: Batch) -> Scored:
        x = take(batch, "x", "cnn").to(self.head.weight.dtype)
        x = x.reshape(x.shape[0], self.channels, *x.shape[-2:])
        x = self.stem(x)
        for block in self.blocks:
            x = functional.avg_pool2d(block(x), 2)
        x = functional.adaptive_avg_pool2d(functional.relu(self.norm(x)), QUARTERS)
        return score(self.head(x.flatten(1)), take(batch, "y", "cnn"))
