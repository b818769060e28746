"""What accumulation is for: the same step with a fraction of the activations."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from trainer.accumulate import accumulate
from trainer.compute.replica import Replica
from trainer.models import build


class Held:
    """Bytes that autograd keeps for backward: now, and at most so far. Parameters do not count."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
        self._storages: dict[int, int] = {}
        self.now = self.peak = 0

    def keep(self, tensor: Tensor) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() in self._parameters:
            return tensor
        box = [tensor]
        key = storage.data_ptr()
        self._storages[key] = self._storages.get(key, 0) + 1
        if self._storages[key] == 1:
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
        holder = _Holder(box)
        weakref.finalize(holder, self._let_go, key, storage.nbytes())
        return holder

    def _let_go(self, key: int, size: int) -> None:
        self._storages[key] -= 1
        if self._storages[key] == 0:
            self.now -= size


class _Holder:
    def __init__(self, box: list[Tensor]) -> None:
        self.box = box


@contextmanager
def watched(model: torch.nn.Module) -> Iterator[Held]:
    held = Held(model)
    with torch.autograd.graph.saved_tensors_hooks(held.keep, lambda h: h.box[0] if isinstance(h, _Holder) else h):
        yield held


def gradients(micro_batches: list[dict[str, Tensor]], args: dict[str, Any]) -> tuple[list[Tensor], int]:
    torch.manual_seed(0)
    model = build("gpt", args).double()
    replica = Replica(model, [torch.device("cpu")], nullcontext)
    with watched(model) as held:
        mine = accumulate(replica, micro_batches)
    assert held.now == 0
    return [g / mine.weight for g in mine.gradients if g is not None], held.peak


def test_batch_32_as_4_times_8_holds_at_most_a_third_and_gives_the_same_gradient() -> None:
    args = {"context": 16, "width": 32, "layers": 2, "heads": 2}
    tokens = torch.randint(256, (32, 17), generator=torch.Generator().manual_seed(3))
    whole, whole_peak = gradients([{"tokens": tokens}], args)
    parts, parts_peak = gradients([{"tokens": part} for part in tokens.split(8)], args)
    assert parts_peak <= whole_peak / 3
    assert max(float((a - b).abs().max()) for a, b in zip(whole, parts, strict=True)) < 1e-10


@pytest.mark.parametrize("layers", [3])
def test_activation_checkpoints_hold_less_and_give_the_same_gradient(layers: int) -> None:
    args = {"context": 16, "width": 32, "layers": layers, "heads": 2}
    tokens = torch.randint(256, (8, 17), generator=torch.Generator().manual_seed(3))
    kept, kept_peak = gradients([{"tokens": tokens}], args)
    again, again_peak = gradients([{"tokens": tokens}], args | {"checkpoint_activations": True})
    assert again_peak < kept_peak
    assert max(float((a - b).abs().max()) for a, b in zip(kept, again, strict=True)) < 1e-10
