"""What the demo leaves: a table on the terminal, a picture, and summary.json."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.testbed.demo.measures import Summary
from trainer.records.history import Histories
from trainer.status.plot import plot

PICTURE, FIGURES = "demo.png", "summary.json"


def publish(figures: Summary, histories: Histories, folder: Path, latest: Path) -> None:
    """Write both to `folder`, which is this run's own, and put copies into `latest`: the demo that ended last wins."""
    (folder / FIGURES).write_text(json.dumps(figures.as_json(), indent=2) + "\n")
    plot(histories, folder / PICTURE, f"{figures.hosts} hosts, {figures.optimizer_steps} optimizer steps")
    for name in (FIGURES, PICTURE):
        part = latest / f".{name}.{os.getpid()}.part"
        shutil.copyfile(folder / name, part)
        part.rename(latest / name)


def show(figures: Summary, console: Console, latest: Path) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in figures.as_json().items():
        table.add_row(name.replace("_", " "), _text(value))
    console.print(table)
    console.print(f"{latest / FIGURES}\n{latest / PICTURE}", style="dim", soft_wrap=True)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{pair} {link['rtt_ms']:g} ms {link['rate_mbit_s']:g} Mbit/s" for pair, link in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
