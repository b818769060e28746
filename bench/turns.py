"""Contestants that take turns: each in a thread of its own, one window at a time, so that all meet the same machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

Gate = Callable[[], None]


class Over(BaseException):
    """Raised in a contestant that is to end."""


class Turns:
    """`contestant(gate)` trains for ever and calls `gate` once a window; `turn` lets it run to the next call."""

    def __init__(self, contestant: Callable[[Gate], None]) -> None:
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._over = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(contestant,))
        self._thread.start()
        self._go.release()
        self._await()

    def turn(self) -> tuple[float, float]:
        """Seconds of one window: on the clock, and of all threads of this process on the processors."""
        began, used = time.perf_counter(), time.process_time()
        self._go.release()
        self._await()
        return time.perf_counter() - began, time.process_time() - used

    def end(self) -> None:
        self._over = True
        self._go.release()
        self._thread.join()

    def _await(self) -> None:
        self._done.acquire()
        if self._error is not None:
            raise self._error

    def _run(self, contestant: Callable[[Gate], None]) -> None:
        self._go.acquire()
        try:
            contestant(self._gate)
        except Over:
            pass
        except BaseException as error:
            self._error = error
        self._done.release()

    def _gate(self) -> None:
        self._done.release()
        self._go.acquire()
        if self._over:
            raise Over
