"""Pure arithmetic: micro-batch, accumulation window, global batch, replicas, learning-rate scale.

    global_batch = micro_batch × accum_steps × replicas        (over all hosts; in ddp each device is a replica)

A given `accum_steps` is always legal and the global batch follows from it. A given `global_batch` is dealt out to the
replicas in micro-batches, a remainder too; `relation: exact` refuses a remainder. No clock, no I/O, no torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trainer.config import Accumulation
from trainer.errors import ConfigError


@dataclass(frozen=True)
class Window:
    """One optimizer step's samples: positions [start, stop) in the order of `epoch`."""

    epoch: int
    start: int
    stop: int

    @property
    def samples(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class StepPlan:
    """What an epoch comes to. `last_window_micro_batches` is of the replica with the largest share."""

    micro_batches_per_epoch: int
    optimizer_steps_per_epoch: int
    last_window_micro_batches: int


def global_batch(accumulation: Accumulation, replicas: int) -> int:
    """Samples per optimizer step over all replicas."""
    if accumulation.global_batch is not None:
        return accumulation.global_batch
    assert accumulation.accum_steps is not None  # config.Accumulation: one of the two is given
    return accumulation.micro_batch * accumulation.accum_steps * replicas


def accum_steps(accumulation: Accumulation, replicas: int) -> int:
    """Micro-batches per window of the replica with the largest share (the others have as many, or one less)."""
    return math.ceil(math.ceil(global_batch(accumulation, replicas) / accumulation.micro_batch) / replicas)


def check_relation(accumulation: Accumulation, replicas: int) -> None:
    """Refuse what cannot be meant. Raises ConfigError naming the field and the nearest values that work.

    Asked once, at the start: a change of the number of replicas in mid-run is dealt with, not refused.
    """
    whole = global_batch(accumulation, replicas)
    lane = accumulation.micro_batch * replicas
    sum_text = f"{replicas} replicas × micro_batch {accumulation.micro_batch} (= {lane})"
    if accumulation.global_batch is not None:
        if accumulation.accum_steps is not None and whole != lane * accumulation.accum_steps:
            raise ConfigError(
                f"accumulation.global_batch = {whole} disagrees with accum_steps = {accumulation.accum_steps}: "
                f"{sum_text} × {accumulation.accum_steps} = {lane * accumulation.accum_steps}",
                "Give one of the two; the other follows",
            )
        if accumulation.relation == "exact" and whole % lane:
            below = max(lane, whole // lane * lane)
            near = " or ".join(str(n) for n in sorted({below, below + lane}))
            raise ConfigError(
                f"accumulation.global_batch = {whole} with relation: exact does not divide by {sum_text}",
                f"Nearest that do: {near}. Or relation: any, which deals the remainder out",
            )
    if accumulation.max_global_batch is not None and whole > accumulation.max_global_batch:
        raise ConfigError(
            f"global batch {whole} = {sum_text} × accum_steps {accum_steps(accumulation, replicas)} "
            f"is over accumulation.max_global_batch = {accumulation.max_global_batch}",
            "Lower accum_steps or micro_batch, or raise the bound",
        )


def windows(epoch: int, start: int, samples: int, batch: int) -> Iterator[Window]:
    """The windows of one epoch from position `start` on. They never cross its end: the last one may be shorter."""
    for begin in range(start, samples, batch):
        yield Window(epoch, begin, min(begin + batch, samples))


def deal(window: Window, micro_batch: int, replicas: int, replica: int) -> tuple[range, ...]:
    """The micro-batches of one replica in `window`, as ranges of positions; perhaps none.

    The window is cut into micro-batches (the last one may be short) that are dealt out in turn, so shares differ by at
    most one micro-batch and a remainder of the global batch is not lost.
    """
    starts = range(window.start, window.stop, micro_batch)
    return tuple(range(s, min(s + micro_batch, window.stop)) for s in starts[replica::replicas])


def step_plan(samples: int, micro_batch: int, replicas: int, steps: int, *, drop_last: bool = False) -> StepPlan:
    """An epoch of `samples` over `replicas`, windows of `steps` micro-batches; windows end with the epoch.

    With `drop_last` each replica has only whole micro-batches, the same number everywhere; without it the replica with
    the largest share decides.
    """
    share = samples // replicas if drop_last else math.ceil(samples / replicas)
    micro_batches = share // micro_batch if drop_last else math.ceil(share / micro_batch)
    whole, rest = divmod(micro_batches, steps)
    return StepPlan(micro_batches, whole + bool(rest), rest or min(steps, micro_batches))


def lr_scale(rule: str, batch: int, base_batch: int) -> float:
    """Factor on the learning rate for a global batch of `batch` samples, given the rate for `base_batch`.

    linear: Goyal et al. 2017 (arXiv:1706.02677); sqrt: Krizhevsky 2014 (arXiv:1404.5997); none: 1.
    """
    ratio = batch / base_batch
    return {"linear": ratio, "sqrt": math.sqrt(ratio), "none": 1.0}[rule]


def batch_text(accumulation: Accumulation, replicas: int) -> str:
    """The virtual batch as one line for logs, status and records."""
    whole, steps = global_batch(accumulation, replicas), accum_steps(accumulation, replicas)
    noun = "replica" if replicas == 1 else "replicas"
    product = accumulation.micro_batch * steps * replicas
    about = "" if product == whole else f", dealt out of {product} places"
    return (
        f"global batch {whole} = micro_batch {accumulation.micro_batch} × accum_steps {steps} "
        f"× {replicas} {noun}{about}"
    )
