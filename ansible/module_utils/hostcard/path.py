"""What a path between two hosts carries: round-trip time and the largest packet, by ping."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

from ansible.module_utils.hostcard.command import find

# Outer IPv6 header 40 + UDP 8 + WireGuard 32. Over IPv4 it would be 60; one figure for both, as wg-quick does.
OVERHEAD = 80
FLOOR = 1280  # the least that IPv6 allows
GRAIN = 8


class Ping:
    """One address to which single packets are sent."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.headers = 48 if ":" in address else 28

    def once(self, *, timeout_s: int, options: tuple[str, ...] = ()) -> float | None:
        """Round-trip time in ms, None without an answer."""
        argv = [find("ping") or "ping", "-n", "-q", "-c", "1", "-W", str(timeout_s), *options, self.address]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        match = re.search(r"= ([\d.]+)/", done.stdout)
        return float(match.group(1)) if done.returncode == 0 and match else None

    def carries(self, mtu: int) -> bool:
        """Does a packet as large as a full one of a mesh with this MTU get there and back unfragmented?"""
        size = str(mtu + OVERHEAD - self.headers)
        return self.once(timeout_s=2, options=("-M", "do", "-s", size)) is not None


def largest_mtu(carries: Callable[[int], bool], now: int, ceiling: int) -> int | None:
    """Largest MTU up to `ceiling` for which `carries`, to 8 bytes; None where not even the smallest is answered.

    `now` is asked early, so that a path which did not change costs few packets."""
    if carries(ceiling):
        return ceiling
    if not carries(FLOOR):
        return None
    low, high = FLOOR, ceiling
    if low == now or (low < now < high and carries(now)):
        low = now
        if now + GRAIN < high and not carries(now + GRAIN):
            return now
    while high - low > GRAIN:
        middle = (low + high) // 2
        low, high = (middle, high) if carries(middle) else (low, middle)
    return low


def endpoint_host(endpoint: str) -> str:
    """Host part of `host:port` or `[v6]:port`."""
    return endpoint.rpartition(":")[0].strip("[]")
