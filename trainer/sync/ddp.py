"""One process per replica over torch.distributed: gloo on CPUs, NCCL on GPUs.

No DistributedDataParallel (docs/adr/0010): the window's sums are exchanged as a value, once, with the numbers that
decide what becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.accumulate import Contribution
from trainer.errors import ComeBack
from trainer.sync.exchange import HEADER_NUMBERS, Header, Total
from trainer.sync.flat import FlatLayout

# Gloo counts its timeout anew for every internal wait, so that those of one large buffer add up to many deadlines.
BUCKET_BYTES = 8 << 20


class DdpExchange:
    """The default process group as an `Exchange`. Built after `rendezvous.meet`."""

    def __init__(self, layout: FlatLayout, who: str) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.broken = False
        self._layout, self._who = layout, who

    def sum(self, mine: Contribution, header: Header) -> Total:
        with self._peers("adding up the window"):
            vector = self._layout.pack(mine)
            rows = [torch.empty(HEADER_NUMBERS, dtype=torch.float64) for _ in range(self.world)]
            own = torch.tensor(header.numbers(), dtype=torch.float64)
            pending = [dist.all_gather(rows, own, async_op=True)]
            for bucket in vector.split(BUCKET_BYTES // vector.element_size()):
                pending.append(dist.all_reduce(bucket, async_op=True))
            for work in pending:
                work.wait()
            headers = tuple(Header.from_numbers(row.tolist()) for row in rows)
            samples = sum(h.samples for h in headers)
            return Total(self._layout.gradients(vector), self._layout.buffers(vector, samples), headers)

    def gather(self, mine: bytes) -> list[bytes]:
        with self._peers("gathering"):
            sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(self.world)]
            dist.all_gather(sizes, torch.tensor([len(mine)]))
            room = max(1, max(int(size) for size in sizes))
            rows = [torch.zeros(room, dtype=torch.uint8) for _ in range(self.world)]
            own = torch.zeros(room, dtype=torch.uint8)
            own[: len(mine)] = torch.frombuffer(bytearray(mine or b"\0"), dtype=torch.uint8)[: len(mine)]
            dist.all_gather(rows, own)
            return [bytes(row[: int(size)].numpy()) for row, size in zip(rows, sizes, strict=True)]

    def send(self, data: Tensor, to: int) -> None:
        with self._peers(f"sending to rank {to}"):
            dist.send(data, to)

    def receive(self, data: Tensor, source: int) -> None:
        with self._peers(f"receiving from rank {source}"):
            dist.recv(data, source)

    def close(self) -> None:
        """Leave the group. After a lost peer it is left as it is: taking it apart would wait for what hangs."""
        if not self.broken:
            dist.destroy_process_group()

    @contextmanager
    def _peers(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, ValueError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            self.broken = True
            reason = (str(error).splitlines() or [type(error).__name__])[0][:160]
            raise ComeBack(
                f"{self._who}: lost a peer while {doing}: {reason}", "Nothing is wrong here: it starts again"
            ) from None
