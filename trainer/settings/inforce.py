"""Settings in force: the run as it is trained now, and the learning rate that follows from it. Pure.

A live change gives a new value; the old one is kept by nobody. In force is part of what a checkpoint holds: a process
that comes back goes on with what all had agreed on, and takes up newer settings like everybody else.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from trainer.batching import global_batch, lr_scale
from trainer.config import Run, revision
from trainer.data.course import Progress
from trainer.optim.schedules import Level, Position, Shape


@dataclass(frozen=True)
class InForce:
    """`base_batch`: global batch that `optimizer.lr` is meant for; `total`: end of the schedule in its unit."""

    run: Run
    replicas: int
    base_batch: int
    level: Level
    total: int

    @classmethod
    def at_start(cls, run: Run, replicas: int, epoch_samples: int) -> InForce:
        base = run.lr_scaling.base_batch or global_batch(run.accumulation, replicas)
        level = Level.constant(_target(run, replicas, base))
        return cls(run, replicas, base, level, _total(run, replicas, epoch_samples, Progress()))

    @cached_property
    def revision(self) -> str:
        return revision(self.run)

    @cached_property
    def global_batch(self) -> int:
        return global_batch(self.run.accumulation, self.replicas)

    @property
    def shape(self) -> Shape:
        schedule = self.run.schedule
        return Shape(schedule.kind, schedule.warmup, self.total, schedule.unit)

    def rate(self, at: Position) -> float:
        """Learning rate of the optimizer step at `at`."""
        return self.level.at(at.step) * self.shape.factor(at)

    def changed(self, run: Run, replicas: int, epoch_samples: int, at: Progress) -> InForce:
        """The same run with other settings, or other replicas, from the next window on; the rate goes there by ramp."""
        base = run.lr_scaling.base_batch or self.base_batch
        target, level = _target(run, replicas, base), self.level
        if target != level.target:  # else a ramp that is under way goes on
            level = level.towards(target, at.step, run.lr_scaling.ramp_steps)
        if level.target == self.level.target and self.level.at(at.step) == self.level.target:
            level = Level.constant(level.target)
        return replace(
            self,
            run=run,
            replicas=replicas,
            base_batch=base,
            level=level,
            total=self.total if self._as_long(run, replicas) else _total(run, replicas, epoch_samples, at),
        )

    def _as_long(self, run: Run, replicas: int) -> bool:
        """Whether the run has as many windows as before: then its schedule ends where it did, whatever was skipped."""
        lengths = [(one.epochs, one.max_steps, one.schedule) for one in (self.run, run)]
        return lengths[0] == lengths[1] and self.global_batch == global_batch(run.accumulation, replicas)

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run.model_dump(mode="json"),
            "replicas": self.replicas,
            "base_batch": self.base_batch,
            "level": asdict(self.level),
            "total": self.total,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> InForce:
        level = Level(**values["level"])
        return cls(Run.model_validate(values["run"]), values["replicas"], values["base_batch"], level, values["total"])


def _target(run: Run, replicas: int, base_batch: int) -> float:
    batch = global_batch(run.accumulation, replicas)
    return run.optimizer.lr * lr_scale(run.lr_scaling.rule, batch, base_batch)


def _total(run: Run, replicas: int, epoch_samples: int, at: Progress) -> int:
    """Where the schedule ends: as given, or the end of the run, with what is left counted in windows of now."""
    if run.schedule.total is not None:
        return run.schedule.total
    batch = global_batch(run.accumulation, replicas)
    per_epoch = math.ceil(epoch_samples / batch)
    left_here = math.ceil(max(0, epoch_samples - at.position) / batch)
    steps = at.step + left_here + per_epoch * max(0, run.epochs - at.epoch - 1)
    if run.max_steps is not None and run.max_steps < steps:
        return run.max_steps if run.schedule.unit == "steps" else at.samples + (run.max_steps - at.step) * batch
    return steps if run.schedule.unit == "steps" else run.epochs * epoch_samples
