"""Learning rate as pure arithmetic: the schedule's shape, and the level it is multiplied with.

    rate = level × shape        level: optimizer.lr × scale of the global batch, on its way after a live change

A position counts optimizer steps made (skipped windows do not count) or samples that entered a step, never
micro-batches and never replicas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Position:
    """Where a step stands: optimizer steps and samples before it, and the samples of its own window."""

    step: int
    samples: int
    window_samples: int


@dataclass(frozen=True)
class Shape:
    """Linear warm-up to 1, then constant, linear or cosine down to 0 at `total`. Counted in `unit`."""

    kind: Literal["constant", "linear", "cosine"] = "constant"
    warmup: int = 0
    total: int | None = None
    unit: Literal["steps", "samples"] = "steps"

    def factor(self, at: Position) -> float:
        """Factor in [0, 1] of the step at `at`."""
        done, own = (at.step, 1) if self.unit == "steps" else (at.samples, at.window_samples)
        if done < self.warmup:
            return min(1.0, (done + own) / self.warmup)
        if self.kind == "constant" or self.total is None:
            return 1.0
        left = max(0.0, (self.total - done) / max(1, self.total - self.warmup))
        return left if self.kind == "linear" else 0.5 * (1.0 - math.cos(math.pi * min(1.0, left)))


@dataclass(frozen=True)
class Level:
    """A rate that moves from `start` to `target` in `ramp_steps` equal parts, the first of them at step `since`."""

    start: float
    target: float
    since: int = 0
    ramp_steps: int = 0

    @classmethod
    def constant(cls, value: float) -> Level:
        return cls(value, value)

    def at(self, step: int) -> float:
        """The level of optimizer step `step` (steps made before it)."""
        parts = step - self.since + 1
        if parts >= self.ramp_steps:
            return self.target
        return self.start + (self.target - self.start) * parts / self.ramp_steps

    def towards(self, target: float, step: int, ramp_steps: int) -> Level:
        """From wherever the rate is now to `target`, beginning with optimizer step `step`."""
        now = self.start if step <= self.since else self.at(step - 1)
        return Level(now, target, step, ramp_steps)
