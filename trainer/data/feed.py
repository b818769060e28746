"""A replica's micro-batches, read ahead over the ends of windows as long as the settings stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from trainer.batching import Window
from trainer.config import Accumulation
from trainer.data.course import Course, Progress
from trainer.data.loader import Fetched, Loader, Readable


@dataclass(frozen=True)
class _Reading:
    """A loader that is on its way, and the window that it comes to next."""

    loader: Loader
    accumulation: Accumulation
    at: tuple[int, int]  # epoch, position


class Feed:
    """Micro-batches of replica `replica` of `replicas`, from `dataset` in the portions of `course`."""

    def __init__(
        self,
        dataset: Readable,
        course: Course,
        replica: int,
        replicas: int,
        *,
        ahead: int = 2,
        pin_memory: bool = False,
    ) -> None:
        self._dataset, self._course = dataset, course
        self.replica, self._replicas = replica, replicas
        self._ahead, self._pin = ahead, pin_memory
        self._reading: _Reading | None = None

    def window(self, window: Window, at: Progress, accumulation: Accumulation) -> Iterator[Fetched]:
        """Our share of `window`, which follows `at`."""
        share = self._course.share(window, accumulation, self._replicas, self.replica)
        reading = self._reading
        if reading is None or reading.accumulation != accumulation or reading.at != (window.epoch, window.start):
            self.close()
            asked = self._from(at, accumulation)
            loader = Loader(self._dataset, asked, ahead=self._ahead, pin_memory=self._pin)
            reading = _Reading(loader, accumulation, (window.epoch, window.start))
        self._reading = None  # not to be gone on with, should this window be left in its middle
        try:
            yield from islice(reading.loader, len(share))
        except BaseException:
            reading.loader.close()
            raise
        after = self._course.next(at.after(window), accumulation, self._replicas)
        here = (after.epoch, after.start) if after else (window.epoch, window.stop)
        self._reading = _Reading(reading.loader, accumulation, here)

    def again(self, window: Window, accumulation: Accumulation) -> Iterator[Fetched]:
        """The same share once more, read directly."""
        for positions in self._course.share(window, accumulation, self._replicas, self.replica):
            ids = self._course.ids(window.epoch, positions)
            yield Fetched(tuple(ids), self._dataset.batch(ids), 0.0)

    def close(self) -> None:
        if self._reading is not None:
            self._reading.loader.close()
            self._reading = None

    def _from(self, at: Progress, accumulation: Accumulation) -> Iterator[Sequence[int]]:
        while (window := self._course.next(at, accumulation, self._replicas)) is not None:
            for positions in self._course.share(window, accumulation, self._replicas, self.replica):
                yield self._course.ids(window.epoch, positions)
            at = at.after(window)
