"""What a run tells about itself while it trains: history, status, metrics; and whether it was asked to stop."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from trainer.batching import Window, accum_steps
from trainer.checkpoint.keeper import Written
from trainer.checkpoint.state import TrainState
from trainer.config import live_changes
from trainer.drain import Drain
from trainer.evaluate import Evaluation
from trainer.metrics.lines import MetricLines
from trainer.metrics.noise import NoiseScale
from trainer.metrics.prometheus import Endpoint
from trainer.metrics.window import Measured, WindowMeter
from trainer.records import events
from trainer.records.history import History
from trainer.records.status import Status, StatusFile
from trainer.settings.inforce import InForce
from trainer.sync.exchange import Total
from trainer.sync.watchdog import Watchdog
from trainer.update import Outcome

Span = tuple[int, int]


@dataclass
class Sinks:
    """Where reports go. What is None is left out."""

    history: History
    status: StatusFile | None = None
    lines: MetricLines | None = None
    endpoint: Endpoint | None = None
    watchdog: Watchdog | None = None


class Watch:
    """One replica's reports. `status` is what a person sees of it now."""

    def __init__(self, sinks: Sinks, meter: WindowMeter, drain: Drain, status: Status) -> None:
        self.drain, self.status = drain, status
        self._sinks, self._meter = sinks, meter
        self._noise = NoiseScale()
        self._unwritten: list[events.Event] = []
        self._told_drain = False

    def beat(self) -> None:
        """Something moved."""
        if self._sinks.watchdog is not None:
            self._sinks.watchdog.beat()

    def begin(self) -> None:
        self.beat()
        self._meter.start()

    def waited(self, seconds: float) -> None:
        self._meter.waited(seconds)

    def window(
        self, state: TrainState, window: Window, read: Sequence[Span], scale: float, total: Total, outcome: Outcome
    ) -> None:
        """A window is over; `state` is after it."""
        self.beat()
        measured = self._meter.finish(total.samples)
        event = _window_event(state, window, read, scale, total, outcome, measured)
        self._record(event)
        if not outcome.skipped:
            headers = total.headers
            self._noise.add([h.norm for h in headers], [h.weight for h in headers], outcome.grad_norm)
        self._show(state, event, measured, outcome)
        if self.drain.asked and not self._told_drain:
            self._told_drain = True
            self.tell(events.Drain(reason=self.drain.reason), state="draining")

    def tell(self, event: events.Event, *, state: str | None = None) -> None:
        """Write any other event, and show it."""
        self._record(event)
        self.status = replace(self.status, last_event=event.name, t=time.time(), state=state or self.status.state)
        self._show_status(now=True)

    def checkpoints(self, written: Sequence[Written]) -> None:
        for one in written:
            if one.stored is None:
                self.note({"step": one.step, "checkpoint_failed": one.reason}, f"checkpoint failed: {one.reason}")
                continue
            size, digest = one.stored.manifest.bytes, one.stored.manifest.files["model.safetensors"][1]
            self.tell(events.Checkpoint(step=one.step, digest=digest, seconds=round(one.seconds, 4), bytes=size))

    def evaluated(self, step: int, found: Evaluation) -> None:
        self.tell(events.Evaluated(step=step, loss=found.loss, accuracy=found.accuracy))
        self._measure({"step": step, "eval_loss": found.loss, "accuracy": found.accuracy})

    def settings(self, before: InForce, after: InForce, step: int) -> None:
        pairs = live_changes(before.run, after.run)
        old, new = {n: a for n, (a, _) in pairs.items()}, {n: b for n, (_, b) in pairs.items()}
        self.status = replace(self.status, revision=after.revision)
        self.tell(events.Settings(step=step, revision=after.revision, before=old, after=new))

    def note(self, values: dict[str, float | int | str | None], text: str) -> None:
        """Something that a person should see but that is not part of the history."""
        self._measure(values)
        self.status = replace(self.status, last_event=text, t=time.time())
        self._show_status(now=True)

    def _record(self, event: events.Event) -> None:
        """Into the history; what a full disk does not take is kept and written when it does."""
        self._unwritten.append(event)
        try:
            while self._unwritten:
                self._sinks.history.write(self._unwritten[0])
                self._unwritten.pop(0)
        except OSError as error:
            if len(self._unwritten) == 1:  # said once, not at every step
                print(f"{self.status.host}: the history cannot be written: {error.strerror}", file=sys.stderr)

    def _show_status(self, *, now: bool) -> None:
        if self._sinks.status is not None:
            with suppress(OSError):  # only for looking at; the history says when the disk is full
                self._sinks.status.write(self.status, now=now)

    def close(self) -> None:
        if self._sinks.lines is not None:
            self._sinks.lines.close()
        if self._sinks.endpoint is not None:
            self._sinks.endpoint.close()

    def _measure(self, values: dict[str, float | int | str | None]) -> None:
        if self._sinks.lines is not None:
            with suppress(OSError):
                self._sinks.lines.write({"t": round(time.time(), 3)} | values)
        if self._sinks.endpoint is not None:
            self._sinks.endpoint.update(values)

    def _show(self, state: TrainState, event: events.WindowRead, measured: Measured, outcome: Outcome) -> None:
        settings = state.inforce.run
        self.status = replace(
            self.status,
            t=time.time(),
            state="training",
            step=state.progress.step,
            epoch=event.epoch,
            window=event.start // state.inforce.global_batch,
            accum_steps=event.accum_steps,
            global_batch=event.global_batch,
            loss=event.loss,
            samples_per_s=event.samples_per_s,
            peak_bytes=event.peak_bytes,
            lr=event.lr if event.lr is not None else self.status.lr,
            revision=state.inforce.revision,
            last_event=event.name,
        )
        self._show_status(now=False)
        if (self._sinks.lines or self._sinks.endpoint) and state.progress.windows % settings.metrics.every_steps == 0:
            self._measure(_figures(state, event, measured, outcome, self._noise.value))


def _window_event(
    state: TrainState,
    window: Window,
    read: Sequence[Span],
    scale: float,
    total: Total,
    outcome: Outcome,
    measured: Measured,
) -> events.WindowRead:
    inforce = state.inforce
    told: dict[str, Any] = {
        "epoch": window.epoch,
        "start": window.start,
        "stop": window.stop,
        "read": tuple(read),
        "weight": total.weight,
        "loss": total.loss,
        "grad_norm": outcome.grad_norm,
        "accum_steps": accum_steps(inforce.run.accumulation, inforce.replicas),
        "micro_batch": inforce.run.accumulation.micro_batch,
        "global_batch": inforce.global_batch,
        "samples_per_s": round(measured.samples_per_s, 3),
        "step_s": round(measured.step_s, 6),
        "wait_s": round(measured.wait_s, 6),
        "peak_bytes": measured.peak_bytes,
        "scale": scale,
        "witness": tuple(int(h.read) for h in total.headers),
    }
    if outcome.skipped:
        return events.Skipped(step=state.progress.step + 1, reason=outcome.skipped, **told)
    return events.Step(step=state.progress.step, lr=outcome.lr, **told)


def _figures(
    state: TrainState, event: events.WindowRead, measured: Measured, outcome: Outcome, noise: float | None
) -> dict[str, float | int | str | None]:
    return {
        "step": state.progress.step,
        "epoch": event.epoch,
        "loss": event.loss,
        "lr": event.lr,
        "grad_norm": event.grad_norm,
        "clipped_norm": None if math.isnan(outcome.clipped_norm) else outcome.clipped_norm,
        "samples_per_s": event.samples_per_s,
        "step_s": event.step_s,
        "wait_s": event.wait_s,
        "peak_bytes": event.peak_bytes,
        "reserved_bytes": measured.reserved_bytes,
        "accum_steps": event.accum_steps,
        "global_batch": event.global_batch,
        "windows_skipped": state.progress.skipped,
        "noise_scale": noise,
    }
