"""One sample through a model before anything is trained: does it fit the data, does it return what it must?"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainer.errors import GradferryError, ModelError
from trainer.models.scored import Batch, Scored

_CURE = "forward(batch) must return Scored(loss_sum, weight, correct): scalar sums, correct may be None"


def probe(model: nn.Module, batch: Batch) -> Scored:
    """Run `batch` through `model` without training it; returns the outcome. Raises ModelError if it cannot train.

    Leaves mode, buffers and random state as they were.
    """
    was_training = model.training
    model.eval()  # batch statistics and dropout must not move
    try:
        with torch.no_grad(), torch.random.fork_rng():
            outcome = model(dict(batch))
    except GradferryError:
        raise
    except Exception as error:
        shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in batch.items())
        reason = (str(error).splitlines() or [""])[0][:200]
        raise ModelError(
            f"model {type(model).__name__} does not take this data ({shapes}): {type(error).__name__}: {reason}",
            "Make model.args fit the data's shapes and number of classes",
        ) from error
    finally:
        model.train(was_training)
    return check_scored(outcome, type(model).__name__)


def check_scored(outcome: object, name: str) -> Scored:
    """`outcome` as a Scored. Raises ModelError naming what was returned instead."""
    if not isinstance(outcome, tuple) or len(outcome) != 3:
        raise ModelError(f"model {name}: forward returned {type(outcome).__name__}, expected Scored", _CURE)
    scored = Scored(*outcome)
    for field, value in scored._asdict().items():
        if field == "correct" and value is None:
            continue
        if not isinstance(value, Tensor) or value.dim() != 0:
            seen = f"shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise ModelError(f"model {name}: {field} is {seen}, expected a scalar tensor", _CURE)
    return scored
