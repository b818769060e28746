"""Samples on their way into a packed folder: plain arrays, split into what is trained on and what is held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.generic]


@dataclass(frozen=True)
class Samples:
    """Field -> array [samples, ...] for each split; `scale`: field -> factor for stored whole numbers."""

    kind: Literal["images", "tokens", "arrays"]
    source: str
    train: Mapping[str, Column]
    held_out: Mapping[str, Column]
    scale: Mapping[str, float] = field(default_factory=dict)


def split(columns: Mapping[str, Column], eval_fraction: float) -> tuple[dict[str, Column], dict[str, Column]]:
    """(train, held out): a fixed shuffle, so that sorted input is split fairly and the same input always the same."""
    count = len(next(iter(columns.values())))
    order = np.random.Generator(np.random.PCG64(20240229)).permutation(count)
    held_out = max(1, round(count * eval_fraction)) if count > 1 else 0
    keep, aside = np.sort(order[held_out:]), np.sort(order[:held_out])
    return {n: c[keep] for n, c in columns.items()}, {n: c[aside] for n, c in columns.items()}
