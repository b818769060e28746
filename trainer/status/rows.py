"""Status files -> rows of the table. Pure but for reading a state folder."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.errors import DataError
from trainer.records.status import Status, parse_status

STALE_S = 60.0  # a rank that trains writes twice a second; a window may take longer


@dataclass(frozen=True)
class Row:
    """One rank, or a host with nothing to show. age_s: since its status was written. problem: why there is none."""

    host: str
    region: str = ""
    status: Status | None = None
    age_s: float | None = None
    problem: str = ""

    @property
    def stale(self) -> bool:
        """True where a rank that should be at work has not been heard of for a while."""
        at_work = self.status is not None and self.status.state != "ended"
        return at_work and self.age_s is not None and self.age_s > STALE_S


def rows_of(host: str, region: str, texts: Iterable[str], now_s: float) -> list[Row]:
    """One row for each status text of `host`, by rank. now_s: unix time on the clock that wrote them."""
    rows = []
    for text in texts:
        try:
            status = parse_status(text)
        except ValueError as error:
            rows.append(Row(host, region, problem=f"damaged status: {error}"))
            continue
        rows.append(Row(status.host, status.region or region, status, max(0.0, now_s - status.t)))
    return sorted(rows, key=_rank) or [Row(host, region, problem="no status yet")]


def rows_of_state(state: Path, now_s: float) -> list[Row]:
    """The rows of a state folder on this machine. Raises DataError where there is no run."""
    if not state.is_dir():
        raise DataError(f"{state}: no such state folder", "Give --state DIR, or -i INVENTORY to ask the hosts")
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted((state / "status").glob("*.json"))]
    return rows_of(state.name, "", texts, now_s)


def row_values(row: Row) -> dict[str, Any]:
    """The row for JSON."""
    told = asdict(row.status) if row.status else {}
    return {**told, "host": row.host, "region": row.region, "age_s": row.age_s, "problem": row.problem or None}


def _rank(row: Row) -> tuple[int, str]:
    return (row.status.rank if row.status else -1), row.host
