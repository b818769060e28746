"""A contribution as one vector, so that one all-reduce carries it: gradients, buffers × samples, used flags."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.accumulate import Contribution
from trainer.compute.replica import Gradients


class FlatLayout:
    """Where each parameter, buffer and flag stands. The order is the model's, so it is the same on every replica.

    Shape of a vector: [elements of parameters | elements of buffers | one flag per parameter]; float32, or float64
    where a parameter is.
    """

    def __init__(self, parameters: Sequence[Tensor], buffers: Sequence[Tensor]) -> None:
        tensors = [*parameters, *buffers]
        wide = any(t.dtype == torch.float64 for t in tensors)
        self.dtype = torch.float64 if wide else torch.float32
        self.device = tensors[0].device
        self._shapes = [t.shape for t in tensors]
        self._sizes = [t.numel() for t in tensors]
        self._parameters, self._buffers = len(parameters), len(buffers)
        self.gradient_elements = sum(self._sizes[: self._parameters])
        self.elements = sum(self._sizes) + self._parameters

    def pack(self, mine: Contribution) -> Tensor:
        """A new vector: a reduce that fails leaves a mixture behind, and `mine` must stay as it is."""
        vector = torch.zeros(self.elements, dtype=self.dtype, device=self.device)
        views = self._views(vector)
        for view, gradient in zip(views, mine.gradients, strict=False):
            if gradient is not None:
                view.copy_(gradient)
        for view, buffer in zip(views[self._parameters :], mine.buffers, strict=True):
            torch.mul(buffer, mine.samples, out=view) if buffer.dtype == view.dtype else view.copy_(
                buffer * mine.samples
            )
        used = [float(g is not None) for g in mine.gradients]
        vector[self.elements - self._parameters :] = torch.tensor(used, dtype=self.dtype)
        return vector

    def gradients(self, vector: Tensor) -> Gradients:
        """Views into `vector`; None where no replica had a gradient."""
        used = vector[self.elements - self._parameters :].tolist()
        return tuple(view if flag else None for view, flag in zip(self._views(vector), used, strict=False))

    def buffers(self, vector: Tensor, samples: float) -> tuple[Tensor, ...]:
        """Means over all samples."""
        return tuple(view / samples for view in self._views(vector)[self._parameters :]) if samples else ()

    def _views(self, vector: Tensor) -> list[Tensor]:
        parts = vector[: self.elements - self._parameters].split(self._sizes)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]
