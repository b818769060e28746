"""Histories -> what the picture of a run shows: loss and speed over time, and what happened when. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.records.events import Evaluated, Resumed, Settings, Step
from trainer.records.history import Histories
from trainer.records.lineage import incarnations_of, sessions_of


@dataclass(frozen=True)
class Mark:
    """Something worth a line in the picture, `t_s` seconds after the first start."""

    t_s: float
    kind: str  # settings or resumed
    text: str


@dataclass(frozen=True)
class Curves:
    """Points of the whole run, as the rank with the lowest number told them; times in seconds after the first start."""

    t_s: tuple[float, ...]
    steps: tuple[int, ...]
    loss: tuple[float | None, ...]
    samples_per_s: tuple[float | None, ...]
    accuracy: tuple[tuple[float, float], ...]
    marks: tuple[Mark, ...]


def curves_of(histories: Histories) -> Curves:
    """What to draw. Empty where there is no step."""
    incarnations = incarnations_of(sessions_of(histories.entries))
    told = [i.sessions[min(i.sessions)] for i in incarnations]
    begin = min((session.t for session in told), default=0.0)
    entries = [entry for session in told for entry in session.entries]
    steps = [(e.t - begin, e.event) for e in entries if isinstance(e.event, Step)]
    evaluated = [(e.t - begin, e.event) for e in entries if isinstance(e.event, Evaluated)]
    changes = [(e.t - begin, e.event) for e in entries if isinstance(e.event, Settings | Resumed)]
    return Curves(
        tuple(t for t, _ in steps),
        tuple(step.step for _, step in steps),
        tuple(step.loss for _, step in steps),
        tuple(step.samples_per_s for _, step in steps),
        tuple((t, event.accuracy) for t, event in evaluated if event.accuracy is not None),
        tuple(_mark(t, event) for t, event in changes),
    )


def _mark(t_s: float, event: Settings | Resumed) -> Mark:
    if isinstance(event, Resumed):
        return Mark(t_s, "resumed", f"resumed at step {event.step}")
    changed = ", ".join(
        f"{name.rsplit('.', 1)[-1]} {event.before.get(name)} → {new}" for name, new in event.after.items()
    )
    return Mark(t_s, "settings", f"step {event.step}: {changed}")
