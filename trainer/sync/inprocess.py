"""Replicas as threads of one process: the sums are made by the last one to arrive, in the order of the ranks."""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from trainer.accumulate import Contribution
from trainer.errors import ComeBack
from trainer.sync.exchange import Header, Total
from trainer.sync.flat import FlatLayout


class Meeting:
    """Where `world` threads meet; each takes its `InProcessExchange` from `seat`."""

    def __init__(self, world: int, deadline_s: float = 60.0) -> None:
        self.world = world
        self.deadline_s = deadline_s
        self._barrier = threading.Barrier(world)
        self._offered: list[Any] = [None] * world
        self.letters: dict[tuple[int, int], queue.Queue[Tensor]] = defaultdict(queue.Queue)

    def seat(self, rank: int, layout: FlatLayout) -> InProcessExchange:
        return InProcessExchange(self, rank, layout)

    def swap(self, rank: int, mine: Any) -> list[Any]:
        """Everybody's offer, by rank. Raises ComeBack when one does not come."""
        self._offered[rank] = mine
        try:
            self._barrier.wait(self.deadline_s)
            offered = list(self._offered)
            self._barrier.wait(self.deadline_s)
        except threading.BrokenBarrierError:
            raise ComeBack(f"replica {rank} lost a peer: it did not come within {self.deadline_s:.0f} s") from None
        return offered

    def leave(self) -> None:
        self._barrier.abort()


class InProcessExchange:
    """One replica's end."""

    def __init__(self, meeting: Meeting, rank: int, layout: FlatLayout) -> None:
        self.rank, self.world = rank, meeting.world
        self._meeting, self._layout = meeting, layout

    def sum(self, mine: Contribution, header: Header) -> Total:
        offered = self._meeting.swap(self.rank, (self._layout.pack(mine), header))
        vector = torch.stack([v for v, _ in offered]).sum(0)  # in the order of the ranks, so the same everywhere
        headers = tuple(h for _, h in offered)
        samples = sum(h.samples for h in headers)
        return Total(self._layout.gradients(vector), self._layout.buffers(vector, samples), headers)

    def gather(self, mine: bytes) -> list[bytes]:
        return self._meeting.swap(self.rank, mine)

    def send(self, data: Tensor, to: int) -> None:
        self._meeting.letters[self.rank, to].put(data.clone())

    def receive(self, data: Tensor, source: int) -> None:
        try:
            data.copy_(self._meeting.letters[source, self.rank].get(timeout=self._meeting.deadline_s))
        except queue.Empty:
            raise ComeBack(f"replica {self.rank}: nothing came from replica {source}") from None

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        """This replica goes without the others; they find out at their next exchange."""
        self._meeting.leave()
