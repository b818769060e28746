"""Metrics as JSON lines: one object a line, for whatever reads them later."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

Value = float | int | str | None


class MetricLines:
    """Append to one file; each rank has its own (`metrics/<host>-<rank>.jsonl`)."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1, encoding="utf-8")  # a whole line at a time

    def write(self, values: Mapping[str, Value]) -> None:
        """One line; what is not finite becomes null."""
        self._file.write(json.dumps({name: _finite(value) for name, value in values.items()}) + "\n")

    def close(self) -> None:
        self._file.close()


def _finite(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value
