"""The table that `gradferry status` shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from trainer.status.rows import Row

COLUMNS = (
    *("host", "region", "rank", "state", "step", "epoch", "window", "accum", "batch"),
    *("loss", "samples/s", "peak", "lr", "revision", "last event", "age"),
)
_LEFT = ("host", "region", "state", "revision", "last event")


def render(rows: Sequence[Row], title: str = "") -> Table:
    """Rows by rank; hosts that say nothing come last and say why."""
    table = Table(title=title or None, title_justify="left", header_style="bold", pad_edge=False, box=None)
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=True)
    for row in sorted(rows, key=lambda r: (r.status is None, r.status.rank if r.status else 0, r.host)):
        texts = [Text(cell) for cell in cells(row)]  # as it is: `[x]` in it is no markup
        table.add_row(*texts, style="red" if row.problem or row.stale else None)
    return table


def cells(row: Row) -> list[str]:
    """The texts of one row, in the order of `COLUMNS`."""
    status = row.status
    if status is None:
        return [row.host, row.region, "–", "silent", *[""] * (len(COLUMNS) - 6), row.problem, "–"]
    return [
        row.host,
        row.region,
        str(status.rank),
        f"{status.state}?" if row.stale else status.state,
        str(status.step),
        str(status.epoch),
        str(status.window),
        _number(status.accum_steps),
        _number(status.global_batch),
        _number(status.loss, ".4f"),
        _number(status.samples_per_s, ".0f"),
        size_text(status.peak_bytes),
        _number(status.lr, ".3g"),
        status.revision,
        status.last_event,
        age_text(row.age_s),
    ]


def size_text(size_bytes: int | None) -> str:
    """`412 MB`, `1.5 GB`."""
    if size_bytes is None:
        return "–"
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"


def age_text(age_s: float | None) -> str:
    """`0 s`, `5 min`, `3 h`, `2 d`."""
    if age_s is None:
        return "–"
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if age_s < limit:
            return f"{age_s / unit:.0f} {name}"
    return f"{age_s / 86400:.0f} d"


def _number(value: float | None, form: str = "d") -> str:
    return "–" if value is None else format(value, form)
