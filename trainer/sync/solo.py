"""One replica alone: its contribution is the total."""

from __future__ import annotations

from torch import Tensor

from trainer.accumulate import Contribution
from trainer.sync.exchange import Header, Total


class SoloExchange:
    """For the strategies `single` and `dp`."""

    rank = 0
    world = 1

    def sum(self, mine: Contribution, header: Header) -> Total:
        return Total(mine.gradients, mine.buffers, (header,))

    def gather(self, mine: bytes) -> list[bytes]:
        return [mine]

    def send(self, data: Tensor, to: int) -> None:
        raise ValueError(f"there is no replica {to}: this one is alone")

    def receive(self, data: Tensor, source: int) -> None:
        raise ValueError(f"there is no replica {source}: this one is alone")

    def close(self) -> None:
        pass
