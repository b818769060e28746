"""Parts of a run that follow from its settings, each built by a function of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor, nn

from trainer.config import Run
from trainer.launch import strategy_of
from trainer.models import build, probe
from trainer.sync.place import Place

VIRTUAL_CPU_DEVICES = 2  # what `dp` splits a micro-batch over where there is no GPU


def devices_of(run: Run, place: Place) -> tuple[torch.device, ...]:
    """The devices of this process: one, or for `dp` all GPUs (two virtual devices on a CPU)."""
    gpus = torch.cuda.device_count()
    if strategy_of(run, place.world) != "dp":
        return (torch.device("cuda", place.local_rank % gpus) if gpus else torch.device("cpu"),)
    count = run.devices if run.devices != "auto" else (gpus or VIRTUAL_CPU_DEVICES)
    return tuple(torch.device("cuda", index) if gpus else torch.device("cpu") for index in range(count))


def dtype_of(run: Run) -> torch.dtype:
    return torch.float64 if run.precision == "float64" else torch.float32


def build_model(run: Run, sample: Mapping[str, Tensor]) -> tuple[nn.Module, float]:
    """The model, with initial weights that follow from the seed, and what `sample` weighs in it (1, or its tokens).

    Raises ModelError where model and data do not fit.
    """
    random.seed(run.seed)
    torch.manual_seed(run.seed)
    model = build(run.model.factory, run.model.args).to(dtype=dtype_of(run))
    return model, max(1.0, float(probe(model, sample).weight))


class Samples(Protocol):
    def __len__(self) -> int: ...

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]: ...


class InPrecision:
    """Samples whose floating-point fields come in the type of the parameters."""

    def __init__(self, samples: Samples, dtype: torch.dtype) -> None:
        self._samples, self._dtype = samples, dtype

    def __len__(self) -> int:
        return len(self._samples)

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]:
        batch = self._samples.batch(ids)
        return {name: value.to(self._dtype) if value.is_floating_point() else value for name, value in batch.items()}
