"""What a rank is doing now: one small file that is replaced, at most about twice a second."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Status:
    """One rank at unix time `t`. state: starting, waiting, training, draining, ended. window: of its epoch, from 0."""

    host: str
    rank: int
    t: float
    state: str = "starting"
    region: str = ""
    step: int = 0
    epoch: int = 0
    window: int = 0
    accum_steps: int | None = None
    global_batch: int | None = None
    loss: float | None = None
    samples_per_s: float | None = None
    peak_bytes: int | None = None
    lr: float | None = None
    revision: str = ""
    last_event: str = ""


class StatusFile:
    """Replace `status/<host>-<rank>.json`; calls that come too soon after one another are left out."""

    def __init__(
        self, state: Path, host: str, rank: int, *, every_s: float = 0.5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = state / "status" / f"{host}-{rank}.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._every_s, self._clock = every_s, clock
        self._due = clock()

    def write(self, status: Status, *, now: bool = False) -> None:
        """Show `status`. `now`: even if the last one was shown just before (a change of state, the end)."""
        if not now and self._clock() < self._due:
            return
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(asdict(status)) + "\n", encoding="utf-8")
        temporary.replace(self.path)
        self._due = self._clock() + self._every_s


def parse_status(line: str) -> Status:
    """A status file's text. Raises ValueError where it is none."""
    try:
        values = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError(f"expected an object, found {type(values).__name__}")
    kinds = {field.name: str(field.type) for field in fields(Status)}
    known = {name: value for name, value in values.items() if name in kinds}
    for name, value in known.items():
        if not _is_a(kinds[name], value):
            raise ValueError(f"{name} = {value!r:.40}, expected {kinds[name]}")
    try:
        return Status(**known)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _is_a(kind: str, value: object) -> bool:
    """Is it of a field's type, as that is written: `int`, `float | None`. Numbers also have to be of a sane size."""
    if value is None:
        return "None" in kind
    if kind.startswith("str"):
        return isinstance(value, str)
    numbers = int if kind.startswith("int") else (int, float)
    if isinstance(value, bool) or not isinstance(value, numbers):
        return False
    return not isinstance(value, int) or abs(value) < 2**63
