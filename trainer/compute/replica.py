"""One replica: a model, perhaps in copies on several devices, and the gradient sums that its backward passes leave.

Sums are float32 or wider whatever the parameters are: gradients of bf16 or fp16 parameters are moved into float32
sums as soon as autograd has them. A parameter that no backward pass reached has no gradient, not a gradient of zero.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from trainer.compute.amp import Autocast
from trainer.models.scored import Batch, Scored

Gradients = tuple[Tensor | None, ...]

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class Replica:
    """`model` on `devices[0]`; on further devices copies of it, which follow after each step (`spread`)."""

    def __init__(self, model: nn.Module, devices: Sequence[torch.device], autocast: Autocast) -> None:
        self.model = model
        self.devices = tuple(devices)
        self.autocast = autocast
        self.statistics = statistics_of(model)
        self._lanes = [_Lane(model, devices[0])]
        self._lanes += [_Lane(copy.deepcopy(model).to(device), device) for device in devices[1:]]

    @property
    def parameters(self) -> tuple[nn.Parameter, ...]:
        """What trains; a tied parameter stands once."""
        return self._lanes[0].parameters

    def split(self, batch: Batch) -> Iterator[tuple[nn.Module, Batch]]:
        """The batch on its device; with several devices a part for each, the first ones one sample larger."""
        samples = samples_of(batch)
        start = 0
        for index, lane in enumerate(self._lanes):
            size = samples // len(self._lanes) + (index < samples % len(self._lanes))
            if size:
                part = batch if size == samples else {k: v[start : start + size] for k, v in batch.items()}
                yield lane.module, {k: v.to(lane.device, non_blocking=True) for k, v in part.items()}
            start += size

    def forward(self, module: nn.Module, part: Batch) -> Scored:
        with self.autocast():
            scored: Scored = module(part)
        return scored

    def take_gradients(self) -> Gradients:
        """The sums over all devices, on the first one; none are left behind."""
        total = list(self._lanes[0].take())
        for lane in self._lanes[1:]:
            for index, gradient in enumerate(lane.take()):
                if gradient is not None:
                    moved, own = gradient.to(self.devices[0]), total[index]
                    total[index] = moved if own is None else own.add_(moved)
        return tuple(total)

    @torch.no_grad()
    def spread(self) -> None:
        """Give the copies the parameters and buffers of the first device."""
        if len(self._lanes) == 1:
            return
        source = [*self.model.parameters(), *self.model.buffers()]
        for lane in self._lanes[1:]:
            for mine, theirs in zip(source, [*lane.module.parameters(), *lane.module.buffers()], strict=True):
                theirs.copy_(mine)


class _Lane:
    """A module on a device with its sums."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self.module, self.device = module, device
        self.parameters = tuple(p for p in module.parameters() if p.requires_grad)
        self._wide: dict[int, Tensor] = {}
        for index, parameter in enumerate(self.parameters):
            if parameter.dtype in (torch.bfloat16, torch.float16):
                parameter.register_post_accumulate_grad_hook(self._widener(index))

    def take(self) -> Gradients:
        found = tuple(self._wide.get(index, p.grad) for index, p in enumerate(self.parameters))
        self._wide.clear()
        for parameter in self.parameters:
            parameter.grad = None
        return found

    def _widener(self, index: int):  # type: ignore[no-untyped-def]
        def widen(parameter: Tensor) -> None:
            gradient, parameter.grad = parameter.grad, None
            if gradient is not None:
                if index in self._wide:
                    self._wide[index].add_(gradient)
                else:
                    self._wide[index] = gradient.float()

        return widen


def statistics_of(model: nn.Module) -> tuple[Tensor, ...]:
    """Running statistics of normalisation, which replicas average; other buffers (masks, positions) are constant."""
    return tuple(b for name, b in model.named_buffers() if name.rpartition(".")[2] in _STATISTICS)


def samples_of(batch: Batch) -> int:
    """Samples of a micro-batch: dimension 0 of any of its tensors."""
    return int(next(iter(batch.values())).shape[0])
