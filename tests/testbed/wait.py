"""Wait for a condition with a deadline; never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.testbed.errors import WaitedTooLong

T = TypeVar("T")


def wait_for(condition: Callable[[], T | None], what: str, *, within_s: float, every_s: float = 0.2) -> T:
    """The first true value of `condition`, asked each `every_s`.

    Raises WaitedTooLong with `what` and the last exception of `condition`, if that was the reason.
    """
    deadline = time.monotonic() + within_s
    last: Exception | None = None
    while True:
        try:
            if value := condition():
                return value
            last = None
        except Exception as error:  # not there yet: the reason is shown if it never comes
            last = error
        if time.monotonic() >= deadline:
            raise WaitedTooLong(f"{what}: not within {within_s:g} s" + (f" ({last})" if last else "")) from last
        time.sleep(every_s)
