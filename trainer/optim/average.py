"""Exponential moving average of the weights, for evaluation (Polyak and Juditsky 1992)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """Starts at the initial weights; after each step made it becomes `decay * average + (1 - decay) * weights`."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._live = dict(model.named_parameters())
        self._kept = {name: p.detach().clone() for name, p in self._live.items()}

    @torch.no_grad()
    def follow(self) -> None:
        """After an optimizer step; a skipped window does not move the average."""
        torch._foreach_lerp_(list(self._kept.values()), list(self._live.values()), 1.0 - self.decay)

    def tensors(self) -> dict[str, Tensor]:
        return self._kept

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take over a saved average; where none was saved, start at the weights as they are."""
        for name, kept in self._kept.items():
            kept.copy_(tensors.get(name, self._live[name]))

    @contextmanager
    @torch.no_grad()
    def in_place(self) -> Iterator[None]:
        """The model with the average as its weights, for as long as the block lasts."""
        own = {name: p.detach().clone() for name, p in self._live.items()}
        try:
            self._fill(self._kept)
            yield
        finally:
            self._fill(own)

    def _fill(self, source: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._live.items():
                parameter.copy_(source[name])
