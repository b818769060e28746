"""The events of a history: one frozen value a line of `history/<host>-<rank>.jsonl`.

A line is the event's fields plus `t` (unix seconds), `host`, `rank` and `event` (its name). A number that is not finite
is written as null. A reader drops fields that it does not know.

Four fields tie the starts of a run together; they may be absent, then time decides (lineage.py):
`Started.incarnation` is one random name that all ranks of one start share. `Resumed.lineage` is the incarnation that
wrote the checkpoint resumed from. `Resumed.epoch` and `Resumed.position` say to the sample where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar
from zlib import crc32

Span = tuple[int, int]  # positions [first, last + 1) in an epoch's order


@dataclass(frozen=True, kw_only=True)
class Event:
    name: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    """All replicas have met. `samples`: of one epoch."""

    name = "started"
    world: int
    run: str
    revision: str
    accum_steps: int
    global_batch: int
    samples: int | None = None
    incarnation: str | None = None


@dataclass(frozen=True, kw_only=True)
class Resumed(Event):
    """State was taken from a checkpoint: whatever came after `step` is not in the parameters any more."""

    name = "resumed"
    step: int
    source: str
    lineage: str | None = None
    epoch: int | None = None
    position: int | None = None


@dataclass(frozen=True, kw_only=True)
class WindowRead(Event):
    """One accumulation window: positions [start, stop) of `epoch` over all ranks, of which this rank read `read`.

    `step` counts optimizer steps made, this one included (a skipped window has the number that it would have had).
    weight: scored tokens or samples over all ranks. loss: mean over them. grad_norm: before clipping.
    witness: by rank, `read_digest` of what each rank told the others in the exchange that it had read.
    """

    step: int
    epoch: int
    start: int
    stop: int
    read: tuple[Span, ...]
    weight: float | None = None
    loss: float | None = None
    lr: float | None = None
    grad_norm: float | None = None
    accum_steps: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    samples_per_s: float | None = None
    step_s: float | None = None
    wait_s: float | None = None
    peak_bytes: int | None = None
    scale: float | None = None
    witness: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step(WindowRead):
    """The window's gradient is in the parameters."""

    name = "step"


@dataclass(frozen=True, kw_only=True)
class Skipped(WindowRead):
    """The window was read and left out, on all ranks: not finite, or nothing scored."""

    name = "skipped"
    reason: str


@dataclass(frozen=True, kw_only=True)
class Settings(Event):
    """New settings are in force after `step`. `before`, `after` (in JSON `from`, `to`): dotted field -> value."""

    name = "settings"
    step: int
    revision: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Event):
    """A checkpoint is complete on this host. `digest`: of the model's parameters, the same on every replica."""

    name = "checkpoint"
    step: int
    digest: str
    seconds: float
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Evaluated(Event):
    """Loss and accuracy on the held-out split. accuracy: share in [0, 1], None where nothing is counted."""

    name = "evaluated"
    step: int
    loss: float | None
    accuracy: float | None = None


@dataclass(frozen=True, kw_only=True)
class Drain(Event):
    """An orderly stop was asked for."""

    name = "drain"
    reason: str


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """The process ends on purpose. `code`: its exit status."""

    name = "ended"
    reason: str
    step: int
    code: int


KINDS: Mapping[str, type[Event]] = {
    kind.name: kind for kind in (Started, Resumed, Step, Skipped, Settings, Checkpoint, Evaluated, Drain, Ended)
}
_JSON_NAMES = {"before": "from", "after": "to"}


def encode(event: Event) -> dict[str, Any]:
    """The event's own fields as JSON values; those at their default are left out."""
    told = {f.name: getattr(event, f.name) for f in fields(event) if getattr(event, f.name) != f.default}
    return {_JSON_NAMES.get(name, name): _finite(value) for name, value in told.items()}


def decode(name: str, values: Mapping[str, Any]) -> Event | None:
    """The event called `name`; None where a newer version wrote a kind that is not known here.

    Raises KeyError for a field that is missing, TypeError or ValueError for a value of another type.
    """
    kind = KINDS.get(name)
    if kind is None:
        return None
    found: dict[str, Any] = {}
    for field in fields(kind):
        json_name = _JSON_NAMES.get(field.name, field.name)
        if json_name in values:
            found[field.name] = values[json_name]
        elif field.default is MISSING:
            raise KeyError(json_name)
    if "read" in found:
        found["read"] = tuple((int(first), int(stop)) for first, stop in found["read"])
    if "witness" in found:
        found["witness"] = tuple(int(digest) for digest in found["witness"])
    return kind(**found)


def read_digest(read: Iterable[Span]) -> int:
    """32 bits (exact in a float64) that stand for the positions read, however they are cut into spans."""
    merged: list[list[int]] = []
    for first, stop in sorted(span for span in read if span[0] < span[1]):
        if merged and merged[-1][1] == first:
            merged[-1][1] = stop
        else:
            merged.append([first, stop])
    return crc32(repr(merged).encode())


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
