"""How a window is cut into pieces: equal, or in proportion to speed. Pure, and the same on every host."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trainer.data.spans import Spans, size, split


def apportion(units: int, weights: Sequence[float]) -> tuple[int, ...]:
    """`units` whole things by weight: largest remainder, ties to the earlier. All weights 0: equal."""
    if not any(weights):
        weights = [1.0] * len(weights)
    total = math.fsum(weights)
    exact = [units * w / total for w in weights]
    counts = [math.floor(x) for x in exact]
    by_rest = sorted(range(len(exact)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_rest[: units - sum(counts)]:
        counts[i] += 1
    return tuple(counts)


def quotas(samples: int, micro_batch: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Samples for each member out of `samples`, in whole micro-batches but for one short one."""
    micro_batches = math.ceil(samples / micro_batch)
    counts = [n * micro_batch for n in apportion(micro_batches, weights)]
    short = micro_batches * micro_batch - samples
    last = max((i for i, n in enumerate(counts) if n), default=0)
    return tuple(n - short if i == last else n for i, n in enumerate(counts))


def cut(spans: Spans, counts: Sequence[int]) -> tuple[Spans, ...]:
    """`spans` in consecutive pieces of `counts` positions, which together are all of it."""
    assert size(spans) == sum(counts)
    pieces = []
    for count in counts:
        piece, spans = split(spans, count)
        pieces.append(piece)
    return tuple(pieces)


def follow_speeds(now: Mapping[str, float], measured: Mapping[str, float], hysteresis: float = 0.1) -> dict[str, float]:
    """The weights to deal by. They change only when a member's share of the whole has moved by more than `hysteresis`.

    Without that, noise in the measurement would move the windows at every step. A member that has not measured yet
    counts with the mean of the others.
    """
    known = [s for s in measured.values() if s > 0]
    mean = math.fsum(known) / len(known) if known else 1.0
    fresh = {m: s if s > 0 else mean for m, s in measured.items()}
    if fresh.keys() != now.keys():
        return fresh
    was, will = math.fsum(now.values()), math.fsum(fresh.values())
    moved = any(abs(fresh[m] / will - now[m] / was) > hysteresis * now[m] / was for m in now)
    return fresh if moved else dict(now)
