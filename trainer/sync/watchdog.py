"""The last resort against an operation that never returns: when nothing moves for too long, the process ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

from trainer.errors import EXIT_COME_BACK


class Watchdog:
    """A thread that ends the process with status 75 when `beat` was not called for `limit_s`.

    Neither a hung collective nor a hung store call can be interrupted from Python, so nothing is cleaned up: the
    checkpoint on disk is what the next start goes on from.
    """

    def __init__(
        self,
        who: str,
        limit_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self._who, self._limit_s, self._clock, self._leave = who, limit_s, clock, leave
        self._last = clock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gradferry-watchdog", daemon=True)

    def start(self) -> None:
        self.beat()
        self._thread.start()

    def beat(self, allow_s: float = 0.0) -> None:
        """Something moved. `allow_s`: what comes now may take so much longer (a rendezvous, a first compilation)."""
        self._last = self._clock() + allow_s

    def stop(self) -> None:
        self._over.set()

    def expired(self) -> bool:
        return self._clock() - self._last > self._limit_s

    def _watch(self) -> None:
        while not self._over.wait(min(1.0, self._limit_s / 4)):
            if self.expired():
                print(
                    f"{self._who}: nothing moved for {self._limit_s:.0f} s (no step, no exchange); starting again",
                    file=sys.stderr,
                    flush=True,
                )
                self._leave(EXIT_COME_BACK)
                return
