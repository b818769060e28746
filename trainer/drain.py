"""An orderly stop. SIGTERM sets a flag; the loop carries it in the next exchange and all replicas stop at one step."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Drain:
    """Whether this process was asked to stop, and by what. Asking twice changes nothing."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.reason = ""

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self, reason: str) -> None:
        if not self._asked.is_set():
            self.reason = reason
            self._asked.set()

    def on_signals(self) -> None:
        """Take SIGTERM and SIGINT as a wish to stop. Called after the rendezvous: before it there is nothing to save,
        and a process that waits for its peers should die at once."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt  # a second Ctrl-C means now
        self.ask(signal.Signals(number).name)
