"""A small run in this process, through the trainer's own composition, for tests of the loop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.checkpoint.state import TrainState
from trainer.config import Run
from trainer.data.course import EpochCourse
from trainer.data.order import Order
from trainer.drain import Drain
from trainer.evaluate import Evaluation, Evaluator
from trainer.loop import Ending
from trainer.metrics.memory import ResidentMemory
from trainer.metrics.window import WindowMeter
from trainer.models.scored import Scored
from trainer.records.history import History, history_path
from trainer.records.status import Status
from trainer.run import Setup, conduct
from trainer.settings.live import AsTheyAre, Desired
from trainer.sync.place import Place
from trainer.sync.solo import SoloExchange
from trainer.watch import Sinks, Watch

SAMPLES = 50


class DropoutNet(nn.Module):
    """Small, with PyTorch's own dropout and batch statistics."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.norm, self.b = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)

    def forward(self, batch: Mapping[str, Tensor]) -> Scored:
        hidden = functional.dropout(torch.relu(self.norm(self.a(batch["x"]))), 0.3, self.training)
        loss = (self.b(hidden) - batch["y"]).square().sum()
        return Scored(loss, torch.tensor(batch["x"].shape[0]), None)


class Numbers:
    """Samples made from their ids."""

    def __len__(self) -> int:
        return SAMPLES

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(5)
        table = torch.randn(SAMPLES, 5, generator=generator)
        rows = table[list(ids)]
        return {"x": rows[:, :4], "y": rows[:, 4:]}


class Losses:
    """Evaluations as given, one after the other."""

    def __init__(self, *values: float) -> None:
        self._values = list(values)

    def __call__(self, state: TrainState, replica: Any, exchange: Any) -> Evaluation | None:
        return Evaluation(self._values.pop(0), None) if self._values else None


def go(
    folder: Path,
    *,
    model: nn.Module | None = None,
    evaluator: Evaluator | None = None,
    desired: Desired | None = None,
    drain: Drain | None = None,
    data_is: str = "",
    **run: Any,
) -> tuple[Ending, TrainState]:
    """Train (or go on) in `folder`; `run` are its settings."""
    values = {"epochs": 4, "accumulation": {"accum_steps": 3, "micro_batch": 4}, **run}
    setup = Setup(
        run=Run.model_validate(values),
        host="here",
        place=Place(),
        folder=folder,
        model=model if model is not None else DropoutNet(),
        samples=Numbers(),
        course=EpochCourse(Order(3, SAMPLES), values["epochs"]),
        evaluator=evaluator or Losses(),
        desired=desired or AsTheyAre(),
        data=data_is,
    )
    with History(history_path(folder, "here", 0), "here", 0) as history:
        meter = WindowMeter(ResidentMemory())
        watch = Watch(Sinks(history), meter, drain or Drain(), Status(host="here", rank=0, t=0))
        return conduct(setup, SoloExchange(), watch)


def told(folder: Path, name: str) -> list[dict[str, Any]]:
    lines = history_path(folder, "here", 0).read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


def equal(a: nn.Module, b: nn.Module) -> bool:
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)
