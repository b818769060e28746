"""Total -> optimizer step, or a skip. One division, one clip, one step; the same on every replica.

Clipping bounds the window's mean gradient, after the exchange and after the loss scale was taken out. Clipping before
`backward()`, as some articles have it, clips nothing: there is no gradient yet, or the one of the window before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from trainer.accumulate import norm_of
from trainer.compute.replica import Gradients
from trainer.sync.exchange import Total


@dataclass(frozen=True)
class Outcome:
    """What became of a window. grad_norm: of the mean gradient, before clipping. skipped: why, empty where it was not.

    clipped_norm: after clipping.
    """

    skipped: str = ""
    grad_norm: float = math.nan
    clipped_norm: float = math.nan
    lr: float = math.nan


def judge(total: Total) -> Outcome:
    """Whether the window can be used, and the norm of its mean gradient."""
    if total.weight == 0:
        return Outcome(skipped="nothing scored")
    if not total.finite:
        return Outcome(skipped="not finite")
    # With one replica its own norm is the total's; with several their sum may still overflow, on all of them alike.
    norm = total.headers[0].norm if len(total.headers) == 1 else float(norm_of(total.gradients) or 0.0)
    if not math.isfinite(norm):
        return Outcome(skipped="not finite")
    return Outcome(grad_norm=norm / total.weight)


def coefficient(weight: float, grad_norm: float, max_norm: float | None) -> float:
    """What the window's sum is multiplied with: the one division by the weight, and the clip of the mean gradient."""
    if max_norm is None or grad_norm <= max_norm:
        return 1.0 / weight
    return max_norm / grad_norm / weight


def scale_(gradients: Gradients, factor: float) -> None:
    """Multiply in place."""
    present = [g for g in gradients if g is not None]
    if present:
        torch._foreach_mul_(present, factor)
