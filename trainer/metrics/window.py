"""The meter of one accumulation window: time, samples a second, data wait, memory peak."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from trainer.metrics.memory import MemoryMeter


@dataclass(frozen=True)
class Measured:
    """One window. step_s: wall time with exchange and optimizer step; wait_s: part of it spent waiting for data."""

    samples: int
    step_s: float
    wait_s: float
    samples_per_s: float
    peak_bytes: int
    reserved_bytes: int


class WindowMeter:
    """`start()` … `finish(samples)`; `waited(seconds)` in between as often as needed."""

    def __init__(self, memory: MemoryMeter, clock: Callable[[], float] = time.perf_counter) -> None:
        self._memory, self._clock = memory, clock
        self._began = clock()
        self._wait_s = 0.0

    def start(self) -> None:
        self._memory.start()
        self._wait_s = 0.0
        self._began = self._clock()

    def waited(self, seconds: float) -> None:
        self._wait_s += seconds

    def finish(self, samples: int) -> Measured:
        """samples: what `samples_per_s` counts, so over all replicas for the speed of the run."""
        step_s = max(self._clock() - self._began, 1e-9)
        peak = self._memory.peak()
        return Measured(samples, step_s, self._wait_s, samples / step_s, peak.allocated_bytes, peak.reserved_bytes)
