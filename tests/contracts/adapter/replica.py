"""One replica of a case: builds the trainer's parts, conducts a leg, and says what the parameters and counters are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tests.contracts.adapter.data import CaseSamples
from tests.contracts.adapter.legs import Killed, Leg, Script, course_of, phase_changes
from tests.contracts.adapter.models import CaseModel
from tests.contracts.adapter.settings import rate_of, run_of, scaler_of
from trainer.accumulate import Contribution
from trainer.checkpoint.state import TrainState
from trainer.checkpoint.store import CheckpointStore, load_values
from trainer.drain import Drain
from trainer.metrics.memory import Peak
from trainer.metrics.window import WindowMeter
from trainer.records.history import History, history_path
from trainer.records.status import Status
from trainer.run import Setup, conduct, layout_of
from trainer.sync.exchange import Exchange, Header, Total
from trainer.sync.flat import FlatLayout
from trainer.sync.place import Place
from trainer.watch import Sinks, Watch


@dataclass(frozen=True)
class Variant:
    """How a case is run: rows padded to `pad_to`, or computing in the case's low precision."""

    pad_to: int | None = None
    low_precision: bool = False


@dataclass
class Seen:
    """What a replica can tell after a leg."""

    params: dict[str, Any] = field(default_factory=dict)
    ema_params: dict[str, Any] = field(default_factory=dict)
    buffers: dict[str, Any] = field(default_factory=dict)
    updates: dict[str, int] = field(default_factory=dict)
    step: int = 0
    skipped: int = 0
    scale: float = 1.0
    rounds: int = 0
    elements: int = 0


class Counted:
    """The exchange with its rounds and the gradient elements handed in counted."""

    def __init__(self, inner: Exchange, layout: FlatLayout) -> None:
        self.rank, self.world = inner.rank, inner.world
        self.rounds = self.elements = 0
        self._inner, self._layout = inner, layout
        self.gather, self.send, self.receive, self.close = inner.gather, inner.send, inner.receive, inner.close

    def sum(self, mine: Contribution, header: Header) -> Total:
        self.rounds += 1
        self.elements += self._layout.gradient_elements
        return self._inner.sum(mine, header)


class NoMemory:
    def start(self) -> None:
        pass

    def peak(self) -> Peak:
        return Peak(0, 0)


class NothingHeldOut:
    def __call__(self, state: TrainState, replica: Any, exchange: Exchange) -> None:
        return None


class ReplicaOfCase:
    """`model` exists before the exchange, whose layout depends on it."""

    def __init__(self, given: Mapping[str, Any], leg: Leg, rank: int, folder: Path, variant: Variant) -> None:
        run = run_of(given, low_precision=variant.low_precision)
        dtype = torch.float64 if run.precision == "float64" else torch.float32
        self.model = CaseModel(given, dtype)
        self.layout = layout_of(self.model)
        self._rank, self._folder = rank, folder / f"rank-{rank}"
        self._drain = Drain()
        course, entries = course_of(given)
        script = Script(run, _windows_done(self._folder), phase_changes(given), leg, self._drain)
        if leg.killed_at is not None and rank == 0:
            self._kill_after(leg.killed_at[1])
        self.setup = Setup(
            run=run,
            host=f"case{rank}",
            place=Place(rank, leg.world),
            folder=self._folder,
            model=self.model,
            samples=CaseSamples(given, entries, dtype, variant.pad_to),
            course=course,
            evaluator=NothingHeldOut(),
            desired=script,
            devices=(torch.device("cpu"),) * given.get("devices_per_replica", 1),
            scaler=scaler_of(given),
            streams={} if self.model.stream is None else {"case": self.model.stream},
            rate=rate_of(given),
        )

    def conduct(self, exchange: Exchange) -> Seen:
        """Train the leg through the trainer's own composition and loop."""
        counted = Counted(exchange, self.layout)
        host = self.setup.host
        with History(history_path(self._folder, host, self._rank), host, self._rank) as history:
            watch = Watch(Sinks(history), WindowMeter(NoMemory()), self._drain, Status(host=host, rank=self._rank, t=0))
            try:
                _, state = conduct(self.setup, counted, watch)
            except Killed:
                return Seen(rounds=counted.rounds, elements=counted.elements)
        return self._seen(state, counted)

    def _seen(self, state: TrainState, counted: Counted) -> Seen:
        return Seen(
            params={name: p.detach().double().tolist() for name, p in self.model.named_parameters()},
            ema_params={n: t.double().tolist() for n, t in state.average.tensors().items()} if state.average else {},
            buffers={name: b.tolist() for name, b in self.model.named_buffers()},
            updates={name: count for name, count in state.updater.updates.items() if count},
            step=state.progress.step,
            skipped=state.progress.skipped,
            scale=state.scaler.scale,
            rounds=counted.rounds,
            elements=counted.elements,
        )

    def _kill_after(self, micro_batches: int) -> None:
        done = 0

        def count() -> None:
            nonlocal done
            if done == micro_batches:
                raise Killed
            done += 1

        self.model.before_forward = count


def _windows_done(folder: Path) -> int:
    stored = CheckpointStore(folder / "checkpoints").newest()
    return int(load_values(stored)["progress"]["windows"]) if stored else 0


def events_of(folder: Path, rank: int) -> list[dict[str, Any]]:
    """The history of one replica, over all legs."""
    path = history_path(folder / f"rank-{rank}", f"case{rank}", rank)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
