"""The emulator's loop: packets in, verdicts out, requests between."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from .control import Control
from .link import RUN_S, Link
from .nfqueue import Nfqueue, kernel_drops
from .rules import Rules
from .table import Table


class JsonLog:
    """Every change of a link with its time, as JSON lines."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", buffering=1)

    def __call__(self, **event: object) -> None:
        self.file.write(json.dumps({"t": round(time.time(), 6), **event}) + "\n")


class Emulator:
    """Queue numbers from `first_queue` on, one a link. `owner`: a pidfd; when that process ends, so do we."""

    def __init__(self, config: Mapping[str, Any], folder: Path, hook: str, first_queue: int, owner: int | None) -> None:
        self.log = JsonLog(folder / "wan.jsonl")
        self.table = Table(config, self.log, Random(config.get("seed", 0)))
        self.links: dict[int, Link] = dict(enumerate(self.table.links.values(), first_queue))
        self.rules = Rules(self.table.nodes, {link.name: queue for queue, link in self.links.items()}, hook)
        self.kernel = Nfqueue(self.links)
        self.control = Control(self.table, folder / "wan.sock", self._drops)
        self.owner = [] if owner is None else [owner]

    def run(self) -> None:
        """Until SIGTERM or the owner's end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(0))
        try:
            self.rules.install()
            priority = hurry()
            self.log(event="start", nodes=self.table.nodes, links=self.table.described(), priority=priority)
            print("wanemu: ready", flush=True)
            while self._turn():
                pass
        finally:
            self.rules.remove()
            self.log(event="stop", links={link.name: link.stats() for link in self.links.values()})
            self.control.close()

    def _turn(self) -> bool:
        """Wait for whatever comes first, deal with it; False when the owner has ended."""
        now = time.monotonic()
        wake = min([self.control.tick(now), *(link.line[0][0] for link in self.links.values() if link.line)])
        waiting: list[Any] = [self.kernel.sock, *self.control.sockets(), *self.owner]
        readable = select.select(waiting, [], [], max(0.0, wake - now))[0]
        packets = 0
        for ready in readable:
            if ready is self.kernel.sock:
                packets = self._take()
            elif ready in self.owner:
                return False
            else:
                self.control.ready(ready)
        now = time.monotonic()
        self.kernel.verdicts((queue, *batch) for queue, link in self.links.items() for batch in link.due(now))
        if 0 < packets < Nfqueue.SLOTS:
            time.sleep(RUN_S)  # let packets gather: one look for many costs far less
        return True

    def _take(self) -> int:
        now = time.monotonic()
        packets = self.kernel.receive()
        for queue, packet_id, size in packets:
            self.links[queue].offer(now, packet_id, size)
        return len(packets)

    def _drops(self) -> dict[str, int]:
        return {self.links[queue].name: count for queue, count in kernel_drops().items() if queue in self.links}


def hurry() -> str:
    """Go before ordinary processes, or delays grow when the machine is busy. The priority that we got."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        return "real-time"
    except OSError:
        with suppress(OSError):
            os.nice(-19)
            return "nice"
    return "ordinary"
