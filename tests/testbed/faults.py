"""What can happen to the network between hosts. Each fault undoes itself when its block is left, however that comes.

    with bed.wan.partition("ap-1"):
        ...                                  # nobody hears ap-1, ap-1 hears nobody
    with bed.wan.delayed("ap-1>eu-1", one_way_ms=400.0, jitter_ms=20.0):
        ...

A link is "a>b" for packets from a to b; "*" stands for any host. The control node is a node like the others, "control",
where its vantage point is used; what the engine's own machine sends to a host does not cross the WAN.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.testbed.errors import BedError
from tests.testbed.wan.client import Client


@dataclass(frozen=True)
class Wan:
    """The emulated WAN of a bed that is up."""

    socket: Path

    @contextmanager
    def partition(self, host: str, *, both_ways: Sequence[str] = ("*",)) -> Iterator[None]:
        """`host` and each of `both_ways` (default: everybody) do not hear each other."""
        links = [link for other in both_ways for link in (f"{host}>{other}", f"{other}>{host}")]
        with self._fault(links, blocked=True):
            yield

    @contextmanager
    def deaf(self, host: str) -> Iterator[None]:
        """One way only: what is sent to `host` is lost, what it sends arrives."""
        with self._fault([f"*>{host}"], blocked=True):
            yield

    @contextmanager
    def delayed(self, link: str, *, one_way_ms: float, jitter_ms: float = 0.0) -> Iterator[None]:
        """`link` takes `one_way_ms` instead of its own delay, ± uniform jitter that never reorders."""
        with self._fault([link], delay_ms=one_way_ms, jitter_ms=jitter_ms):
            yield

    @contextmanager
    def throttled(self, link: str, *, rate_mbit_s: float) -> Iterator[None]:
        """`link` carries `rate_mbit_s` of IP bytes and no more."""
        with self._fault([link], rate_mbit_s=rate_mbit_s):
            yield

    @contextmanager
    def lossy(self, link: str, *, loss_pct: float) -> Iterator[None]:
        """`link` loses packets, each by its own throw of the emulator's seeded dice."""
        with self._fault([link], loss_pct=loss_pct):
            yield

    def stats(self) -> dict[str, dict[str, Any]]:
        """Link -> counters and the parameters in force."""
        with Client(self.socket) as client:
            return client.stats()

    def check_believable(self, *, late_ms: float = 50.0) -> None:
        """Raise BedError if the emulator fell behind, so that what was measured means little."""
        stats = self.stats()
        dropped = {link: s["kernel_dropped"] for link, s in stats.items() if s["kernel_dropped"]}
        late = {link: s["late_ms_max"] for link, s in stats.items() if s["late_ms_max"] > late_ms}
        if dropped or late:
            raise BedError(f"the WAN emulator fell behind: dropped {dropped}, late by ms {late}")

    @contextmanager
    def _fault(self, links: Sequence[str], **changes: float | bool) -> Iterator[None]:
        with Client(self.socket) as client:
            for link in links:
                client.fault(link, **changes)
            yield
