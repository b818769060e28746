"""The samples of a case, and its stream of micro-batches as a course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from trainer.batching import Window
from trainer.config import Accumulation
from trainer.data.course import Progress
from trainer.models.scored import IGNORED


@dataclass(frozen=True)
class Entry:
    """A sample in a place of the stream: which one, and what its micro-batch's loss is multiplied with."""

    sample: int
    factor: float = 1.0


class CaseSamples:
    """Batches by entry number. `pad_to`: length of rows; None for the longest of the micro-batch."""

    def __init__(
        self, given: Mapping[str, Any], entries: Sequence[Entry], dtype: torch.dtype, pad_to: int | None
    ) -> None:
        self._data, self._entries, self._dtype, self._pad_to = given["data"], entries, dtype, pad_to
        self._pad_token = given.get("padding", {}).get("pad_token", 0)
        self._injected = bool(given.get("inject"))

    def __len__(self) -> int:
        return len(self._entries)

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]:
        entries = [self._entries[i] for i in ids]
        samples = [entry.sample for entry in entries]
        batch = self._rows(samples) if "sequences" in self._data else self._vectors(samples)
        if self._injected:
            batch["factor"] = torch.tensor([entry.factor for entry in entries], dtype=self._dtype)
        return batch

    def _vectors(self, samples: Sequence[int]) -> dict[str, Tensor]:
        names = [name for name in ("x", "y", "route") if name in self._data]
        return {n: torch.tensor([self._data[n][i] for i in samples], dtype=self._dtype) for n in names}

    def _rows(self, samples: Sequence[int]) -> dict[str, Tensor]:
        rows = [self._data["sequences"][i] for i in samples]
        labels = [self._data["labels"][i] for i in samples] if "labels" in self._data else rows
        length = self._pad_to or max(map(len, rows))
        return {
            "tokens": torch.tensor([row + [self._pad_token] * (length - len(row)) for row in rows]),
            "labels": torch.tensor([row + [IGNORED] * (length - len(row)) for row in labels]),
        }


Row = list[list[tuple[int, ...]]]  # [replica][micro-batch] -> entry numbers


@dataclass
class StreamCourse:
    """`stream` and `accumulation.steps` of a case. A row is what a window is made of: with one number of steps for all
    a micro-batch of each replica (so that the steps may change while it trains), else each replica's whole window."""

    entries: list[Entry] = field(default_factory=list)
    epochs: list[list[Row]] = field(default_factory=list)
    whole_windows: bool = False
    samples: int = 0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> StreamCourse:
        streams = given["stream"]["replicas"]
        steps = given["accumulation"].get("steps")
        course = cls(whole_windows=isinstance(steps, list))
        per_row = steps if isinstance(steps, list) else [1] * len(streams)
        for epoch in range(given["stream"].get("epochs", 1)):
            rows = max(-(-len(mbs) // k) for mbs, k in zip(streams, per_row, strict=True))
            course.epochs.append([course._row(given, epoch, n, streams, per_row) for n in range(rows)])
        course.samples = sum(len(mb) for mbs in streams for mb in mbs)
        return course

    def _row(self, given: Mapping[str, Any], epoch: int, number: int, streams: Any, per_row: Sequence[int]) -> Row:
        row: Row = []
        for replica, (micro_batches, k) in enumerate(zip(streams, per_row, strict=True)):
            own = []
            for index in range(number * k, min((number + 1) * k, len(micro_batches))):
                factor = _factor(given, epoch, replica, index)
                first = len(self.entries)
                self.entries.extend(Entry(sample, factor) for sample in micro_batches[index])
                own.append(tuple(range(first, len(self.entries))))
            row.append(own)
        return row

    def next(self, at: Progress, accumulation: Accumulation, replicas: int) -> Window | None:
        epoch, start = (at.epoch, at.position) if at.position < self.samples else (at.epoch + 1, 0)
        if epoch >= len(self.epochs):
            return None
        stop = start + sum(len(mb) for row in self._rows(epoch, start, accumulation) for own in row for mb in own)
        return Window(epoch, start, stop)

    def share(self, window: Window, accumulation: Accumulation, replicas: int, replica: int) -> Sequence[range]:
        found = []
        first_entry = window.epoch * self.samples
        for row in self._rows(window.epoch, window.start, accumulation):
            found += [range(mb[0] - first_entry, mb[-1] + 1 - first_entry) for mb in row[replica]]
        return found

    def ids(self, epoch: int, positions: range) -> Sequence[int]:
        first_entry = epoch * self.samples
        return range(first_entry + positions.start, first_entry + positions.stop)

    def _rows(self, epoch: int, start: int, accumulation: Accumulation) -> list[Row]:
        position = 0
        for number, row in enumerate(self.epochs[epoch]):
            if position == start:
                count = 1 if self.whole_windows else int(accumulation.accum_steps or 1)
                return self.epochs[epoch][number : number + count]
            position += sum(len(mb) for own in row for mb in own)
        raise ValueError(f"no window starts at position {start} of epoch {epoch}")


def _factor(given: Mapping[str, Any], epoch: int, replica: int, micro_batch: int) -> float:
    for one in given.get("inject", ()):
        if (one["epoch"], one["replica"], one["micro_batch"]) == (epoch, replica, micro_batch):
            return float(one["loss_factor"])
    return 1.0
