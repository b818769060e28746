"""Batches read ahead by one thread, in the order asked for, and never beyond what was asked for."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from torch import Tensor

from trainer.errors import DataError, GradferryError


class Readable(Protocol):
    """What can be read by sample id."""

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]: ...


@dataclass(frozen=True)
class Fetched:
    """A micro-batch, and how long the consumer stood waiting for it."""

    ids: tuple[int, ...]
    batch: dict[str, Tensor]
    wait_s: float


class Loader:
    """Iterate over micro-batches: `with Loader(dataset, micro_batches) as loader: for fetched in loader: ...`

    `micro_batches` gives tuples of sample ids. It is advanced in the consumer's thread only, at most `ahead` further
    than what was handed out; whoever closes the loader early knows that nothing beyond that was read.
    A read that fails raises DataError, with the cause, at its place in the order. Not to be shared between threads.
    """

    def __init__(
        self,
        dataset: Readable,
        micro_batches: Iterable[Sequence[int]],
        *,
        ahead: int = 2,
        pin_memory: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._dataset, self._clock, self._pin = dataset, clock, pin_memory
        self._asked = iter(micro_batches)
        self._ahead = ahead
        self._reading: deque[tuple[tuple[int, ...], Future[dict[str, Tensor]]]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gradferry-loader")
        self.wait_s = 0.0  # in total

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Iterator[Fetched]:
        return self

    def __next__(self) -> Fetched:
        self._read_ahead(1 + self._ahead)
        if not self._reading:
            self.close()
            raise StopIteration
        ids, reading = self._reading.popleft()
        began = self._clock()
        try:
            batch = reading.result()
        except GradferryError:
            self.close()
            raise
        except Exception as error:
            self.close()
            raise DataError(f"reading samples {_brief(ids)} failed: {type(error).__name__}: {error}") from error
        waited = self._clock() - began
        self.wait_s += waited
        return Fetched(ids, batch, waited)

    def close(self) -> None:
        """Stop reading; what was read and not taken is dropped. May be called twice."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._reading.clear()
        self._asked = iter(())

    def _read_ahead(self, count: int) -> None:
        while len(self._reading) < count:
            ids = next(self._asked, None)
            if ids is None:
                return
            self._reading.append((tuple(ids), self._thread.submit(self._read, tuple(ids))))

    def _read(self, ids: tuple[int, ...]) -> dict[str, Tensor]:
        batch = self._dataset.batch(ids)
        return {name: value.pin_memory() for name, value in batch.items()} if self._pin else batch


def _brief(ids: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ids[:4]))
    return f"{shown}, … ({len(ids)})" if len(ids) > 4 else shown
