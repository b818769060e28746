"""What a model returns: sums, never means, so that micro-batches of any size can be added up and divided once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from trainer.errors import DataError

IGNORED = -100  # a target that is not scored: padding, masked tokens

Batch = Mapping[str, Tensor]  # dimension 0 of each tensor is the sample


class Scored(NamedTuple):
    """The outcome of one micro-batch.

    loss_sum: scalar, the loss summed over what is scored, with its graph. weight: scalar, how many tokens (or samples)
    that sum is over; 0 where nothing is scored. correct: scalar, how many of them were predicted right, or None.
    """

    loss_sum: Tensor
    weight: Tensor
    correct: Tensor | None


def score(logits: Tensor, targets: Tensor, *, count_correct: bool = True) -> Scored:
    """Cross-entropy sums of `logits` [..., classes] against `targets` [...]; targets of -100 do not count.

    Computed in float32 at least, also under autocast. Reads nothing back from the device.
    """
    flat = logits.flatten(0, -2).to(torch.promote_types(logits.dtype, torch.float32))
    wanted = targets.flatten()
    loss_sum = functional.cross_entropy(flat, wanted, ignore_index=IGNORED, reduction="sum")
    weight = (wanted != IGNORED).sum()
    correct = (flat.detach().argmax(-1) == wanted).sum() if count_correct else None
    return Scored(loss_sum, weight, correct)


def take(batch: Batch, field: str, model: str) -> Tensor:
    """`batch[field]`; raises DataError that names what the data has instead."""
    if field not in batch:
        raise DataError(
            f"model {model} reads the field `{field}`, the data has {', '.join(sorted(batch)) or 'none'}",
            "Choose a model for this kind of data (mlp, cnn: images; gpt: text), or pack other data",
        )
    return batch[field]
