"""One direction of one path: decides each packet's fate. No I/O and no clock: `now` (seconds) comes in."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from random import Random

DROP, ACCEPT = 0, 1
RUN_S = 0.00025  # packets due within this span leave together

Value = float | bool  # of a parameter, on its way through JSON


@dataclass(frozen=True)
class Parameters:
    """What a link does to packets. 0 means no delay, no loss, and no limit of the rate."""

    delay_ms: float = 0.0
    jitter_ms: float = 0.0  # uniform, ±; delays, never reorders
    rate_mbit_s: float = 0.0  # of IP bytes
    loss_pct: float = 0.0
    blocked: bool = False  # new packets are dropped; those in flight arrive
    buffer_ms: float = 200.0  # a packet that would wait longer for its turn is dropped

    def with_changes(self, changes: Mapping[str, object]) -> Parameters:
        """These parameters with `changes` on top. Raises ValueError for an unknown name or a value out of range."""
        return replace(self, **checked(changes))  # type: ignore[arg-type]  # checked has seen to the types


def checked(changes: Mapping[str, object]) -> dict[str, Value]:
    """`changes` with each value checked and numbers as float. Raises ValueError."""
    names = [field.name for field in fields(Parameters)]
    out: dict[str, Value] = {}
    for name, value in changes.items():
        if name not in names:
            raise ValueError(f"unknown link parameter {name!r}; known: {', '.join(names)}")
        out[name] = _flag(value) if name == "blocked" else _number(name, value)
    return out


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("blocked must be true or false")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} must be a number")
    if not 0 <= value < 1e7 or (name == "loss_pct" and value > 100):
        raise ValueError(f"{name} is out of range: {value}")
    return float(value)


class Link:
    """Packets in, batch verdicts out.

    They stay in order, so the line is kept as runs [due, last packet id, verdict, packets]: each run is answered with
    one verdict. A lost packet is dropped when it reaches the head of the line, so that the kernel never searches.
    """

    def __init__(self, name: str, parameters: Parameters, rng: Random) -> None:
        self.name, self.rng = name, rng
        self.line: deque[list[float]] = deque()
        self.free_at = 0.0  # when the sender's serialiser is next idle
        self.last_due = 0.0
        self.packets = self.bytes = self.lost = self.overflowed = self.refused = 0
        self.late_s = 0.0  # the most that a release came after its time
        self.set(parameters)

    def set(self, parameters: Parameters) -> None:
        """From now on. What is in the line keeps its time: an old backlog leaves as it would have."""
        self.parameters = parameters
        self.delay_s, self.jitter_s = parameters.delay_ms / 1e3, parameters.jitter_ms / 1e3
        self.byte_s = 8e-6 / parameters.rate_mbit_s if parameters.rate_mbit_s else 0.0
        self.free_at = 0.0

    def offer(self, now: float, packet_id: int, size: int) -> None:
        """A packet of `size` bytes has come."""
        self.packets += 1
        self.bytes += size
        when = self._leaves_at(now, size)
        if when is None:
            self._append(max(self.last_due, now), packet_id, DROP)
        else:
            self.last_due = max(self.last_due, now, when)
            self._append(self.last_due, packet_id, ACCEPT)

    def due(self, now: float) -> list[tuple[int, int]]:
        """Take and return the (packet id, verdict) batches due at `now`."""
        line = self.line
        out: list[tuple[int, int]] = []
        if line and now - line[0][0] > self.late_s:
            self.late_s = now - line[0][0]
        while line and line[0][0] <= now:
            _, packet_id, verdict, _ = line.popleft()
            if out and out[-1][1] == verdict:
                out[-1] = (int(packet_id), int(verdict))
            else:
                out.append((int(packet_id), int(verdict)))
        return out

    def stats(self) -> dict[str, Value]:
        """Counters since the start, and the parameters in force."""
        counters = {name: getattr(self, name) for name in ("packets", "bytes", "lost", "overflowed", "refused")}
        held = int(sum(run[3] for run in self.line))
        return counters | {"held": held, "late_ms_max": round(self.late_s * 1e3, 3)} | asdict(self.parameters)

    def _leaves_at(self, now: float, size: int) -> float | None:
        """When the packet is out at the far end; None if it is dropped on the way."""
        if self.parameters.blocked:
            self.refused += 1
            return None
        free_at = max(self.free_at, now)
        if free_at - now > self.parameters.buffer_ms / 1e3:
            self.overflowed += 1
            return None
        self.free_at = free_at + size * self.byte_s
        if self.parameters.loss_pct and self.rng.random() * 100 < self.parameters.loss_pct:
            self.lost += 1
            return None
        jitter = self.rng.uniform(-self.jitter_s, self.jitter_s) if self.jitter_s else 0.0
        return self.free_at + self.delay_s + jitter

    def _append(self, due: float, packet_id: int, verdict: int) -> None:
        if self.line:
            run = self.line[-1]
            if run[2] == verdict and due - run[0] < RUN_S:
                run[1] = packet_id
                run[3] += 1
                return
        self.line.append([due, packet_id, verdict, 1])
