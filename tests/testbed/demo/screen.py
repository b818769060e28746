"""What is shown meanwhile: phases with their time, and who trains what: a live table on a terminal, lines in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trainer.records.status import Status

LINE_EVERY_S = 5.0
COLUMNS = ("host", "region", "state", "step", "window", "accum_steps", "loss", "samples/s", "peak MB")


@dataclass
class Screen:
    """`begin`: monotonic seconds of the start; `told`: when the last line of a log was written."""

    console: Console
    begin: float
    told: float = 0.0
    live: Live | None = field(default=None, repr=False)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.begin

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Say when it begins and how long it took."""
        start = time.monotonic()
        self.say(f"{name} …")
        with Live(console=self.console, refresh_per_second=4, transient=True) as live:
            self.live = live if self.console.is_terminal else None
            try:
                yield
            finally:
                self.live = None
        self.say(f"{name}: {time.monotonic() - start:.1f} s")

    def say(self, text: str) -> None:
        """A line that stays, with the time since the start."""
        self.console.print(Text.assemble((f"[{self.elapsed_s:6.1f} s] ", "dim"), text), soft_wrap=True)

    def show(self, statuses: Mapping[str, Status | None], note: str = "") -> None:
        """The hosts as they are now, under `note`. In a log: a line every few seconds."""
        if self.live:
            self.live.update(Group(Text(note, style="dim"), _table(statuses)))
        elif time.monotonic() - self.told >= LINE_EVERY_S:
            self.told = time.monotonic()
            seen = "; ".join(_short(host, status) for host, status in statuses.items() if status)
            self.say("   ".join(part for part in (seen, note) if part) or "waiting")


def _table(statuses: Mapping[str, Status | None]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if number < 3 else "right")
    for host, status in statuses.items():
        table.add_row(*([host, *_cells(status)] if status else [host, "", "–"]))
    return table


def _cells(status: Status) -> list[str]:
    return [
        status.region,
        status.state,
        str(status.step),
        f"{status.epoch}:{status.window}",
        str(status.accum_steps or ""),
        "" if status.loss is None else f"{status.loss:.4f}",
        "" if status.samples_per_s is None else f"{status.samples_per_s:.0f}",
        "" if status.peak_bytes is None else f"{status.peak_bytes / 2**20:.0f}",
    ]


def _short(host: str, status: Status) -> str:
    loss = "" if status.loss is None else f" loss {status.loss:.3f}"
    speed = "" if status.samples_per_s is None else f" {status.samples_per_s:.0f}/s"
    peak = "" if status.peak_bytes is None else f" {status.peak_bytes / 2**20:.0f} MB"
    return f"{host} {status.state} step {status.step} K={status.accum_steps}{loss}{speed}{peak}"
