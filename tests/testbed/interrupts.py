"""Ctrl-C and SIGTERM: both stop what is under way in the same manner, and neither stops the clean-up after it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM)


def stop_on_signals() -> None:
    """From here on both raise KeyboardInterrupt; SIGINT too where a shell had it ignored for a background job."""
    for number in STOPPING:
        signal.signal(number, signal.default_int_handler)


@contextmanager
def undisturbed() -> Iterator[None]:
    """A signal that comes within the block is delivered at its end: half a clean-up helps nobody."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
