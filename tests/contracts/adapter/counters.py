"""The two kinds of case that only count: the plan of an epoch, and what happens at which step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.contracts.adapter.models import CaseModel, Unsupported
from tests.contracts.adapter.replica import NoMemory
from trainer.batching import step_plan
from trainer.checkpoint.state import TrainState
from trainer.config import Run
from trainer.data.course import EpochCourse
from trainer.data.order import Order
from trainer.drain import Drain
from trainer.evaluate import Evaluation
from trainer.metrics.window import WindowMeter
from trainer.records.history import History, read_histories
from trainer.records.status import Status
from trainer.run import Setup, conduct
from trainer.settings.live import AsTheyAre
from trainer.sync.place import Place
from trainer.sync.solo import SoloExchange
from trainer.watch import Sinks, Watch

ROW = {"samples", "micro_batch", "replicas", "accum_steps", "epochs", "max_steps", "drop_last", "id", "name", "note"}


def step_arithmetic(given: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer's plan of each row, row by row and also key by key."""
    rows = [_plan(row) for row in given["rows"]]
    return {"rows": rows, "plan": rows} | {key: [row[key] for row in rows] for key in rows[0]}


def _plan(row: Mapping[str, Any]) -> dict[str, Any]:
    if unknown := set(row) - ROW:
        raise Unsupported(f"given.rows: {sorted(unknown)}")
    replicas, drop_last = row.get("replicas", 1), row.get("drop_last", False)
    plan = step_plan(row["samples"], row["micro_batch"], replicas, row["accum_steps"], drop_last=drop_last)
    per_epoch = plan.optimizer_steps_per_epoch
    epochs, limit = row.get("epochs"), row.get("max_steps")
    total = min(n for n in (limit, None if epochs is None else epochs * per_epoch) if n is not None)
    return {
        "micro_batches_per_epoch": plan.micro_batches_per_epoch,
        "optimizer_steps_per_epoch": per_epoch,
        "total_optimizer_steps": total,
        "epochs_started": math.ceil(total / per_epoch) if per_epoch else 0,
        "last_window_micro_batches": plan.last_window_micro_batches,
    }


EVENTS = {
    *("kind", "save_every", "eval_every", "eval_values", "patience", "accum_steps", "accumulation", "micro_batches"),
    *("micro_batches_per_epoch", "epochs", "max_steps", "optimizer_steps", "total_optimizer_steps", "rule", "note"),
    *("better", "mode", "dtype"),
}


def step_events(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Train something for real, with the evaluations that the case prescribes, and read the history."""
    if unknown := set(given) - EVENTS:
        raise Unsupported(f"given: {sorted(unknown)}")
    steps = given.get("accum_steps") or given.get("accumulation", {}).get("steps") or 1
    values = list(given["eval_values"])
    sign = -1.0 if given.get("better", given.get("mode", "lower")) in ("higher", "max", "greater") else 1.0
    limits = [given[name] for name in ("max_steps", "optimizer_steps", "total_optimizer_steps") if name in given]
    per_epoch = given.get("micro_batches_per_epoch") or given.get("micro_batches")
    endless = per_epoch is None
    samples = per_epoch or steps
    run = Run.model_validate(
        {
            "epochs": given.get("epochs", 1 << 30 if endless else 1),
            "max_steps": min([*limits, given["eval_every"] * len(values)] if endless else limits, default=None),
            "accumulation": {"accum_steps": steps, "micro_batch": 1},
            "evaluate": {"every_steps": given["eval_every"], "patience": given.get("patience")},
            "checkpoint": {"every_steps": given["save_every"], "keep": 1 << 20},
            "precision": "float64",
        }
    )
    _conduct(run, samples, [sign * value for value in values], folder)
    return _told(folder, run, steps, sign)


def _conduct(run: Run, samples: int, values: list[float], folder: Path) -> None:
    model = CaseModel({"model": {"kind": "dot", "params": {"w": [1.0]}}}, torch.float64)
    setup = Setup(
        run=run,
        host="case",
        place=Place(),
        folder=folder,
        model=model,
        samples=_Ones(samples),
        course=EpochCourse(Order(0, samples), run.epochs),
        evaluator=_Prescribed(values),
        desired=AsTheyAre(),
    )
    with History(folder / "history" / "case-0.jsonl", "case", 0) as history:
        watch = Watch(Sinks(history), WindowMeter(NoMemory()), Drain(), Status(host="case", rank=0, t=0))
        conduct(setup, SoloExchange(), watch)


def _told(folder: Path, run: Run, steps: int, sign: float) -> dict[str, Any]:
    events = [entry.event for entry in read_histories(folder).entries]
    stopped = max(e.step for e in events if e.name == "step")  # type: ignore[attr-defined]
    evaluated = [e for e in events if e.name == "evaluated" and e.step % run.evaluate.every_steps == 0]  # type: ignore[attr-defined]
    saved = {e.step for e in events if e.name == "checkpoint"}  # type: ignore[attr-defined]
    micro_batches = sum(len(e.read) for e in events if e.name == "step")  # type: ignore[attr-defined]
    return {
        "stopped_at_optimizer_step": stopped,
        "eval_steps": [e.step for e in evaluated],  # type: ignore[attr-defined]
        "save_steps": sorted(step for step in saved if step % run.checkpoint.every_steps == 0),
        "micro_batches_consumed": micro_batches,
        "best_value": min((sign * e.loss for e in evaluated), key=lambda v: sign * v),  # type: ignore[attr-defined]
    }


class _Ones:
    def __init__(self, samples: int) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return self._samples

    def batch(self, ids: Any) -> dict[str, Tensor]:
        return {"x": torch.ones(len(ids), 1, dtype=torch.float64)}


class _Prescribed:
    """The values of the case, one after the other."""

    def __init__(self, values: list[float]) -> None:
        self._values = list(reversed(values))

    def __call__(self, state: TrainState, replica: Any, exchange: Any) -> Evaluation | None:
        return Evaluation(self._values.pop(), None) if self._values else None
