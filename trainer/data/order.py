"""The order of an epoch: a permutation that follows from (seed, epoch, samples) alone. Pure; no torch, no numpy.

Every host computes the same order, so no order is sent anywhere and a resumed run needs none saved: a position in an
epoch names its sample for ever.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence


def epoch_order(seed: int, epoch: int, samples: int) -> Sequence[int]:
    """Sample ids 0 .. samples-1 in the order of `epoch`."""
    ids = array("q", range(samples))
    # A text seed goes through SHA-512 (`random.seed` version 2), so neighbouring epochs have unrelated orders.
    random.Random(f"gradferry/{seed}/{epoch}").shuffle(ids)
    return ids


class Order:
    """`epoch_order` with the latest epoch kept, for windows that are asked for one after the other."""

    def __init__(self, seed: int, samples: int) -> None:
        self.samples = samples
        self._seed = seed
        self._epoch: tuple[int, Sequence[int]] = (-1, ())

    def ids(self, epoch: int, positions: range) -> Sequence[int]:
        """Sample ids at `positions` of `epoch`."""
        if self._epoch[0] != epoch:
            self._epoch = (epoch, epoch_order(self._seed, epoch, self.samples))
        return self._epoch[1][positions.start : positions.stop]
