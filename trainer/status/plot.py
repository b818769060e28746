"""The picture of a run: loss and accuracy above, samples per second below, changes marked. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from trainer.errors import DataError
from trainer.records.history import Histories
from trainer.status.curves import Curves, curves_of

_COLOURS = {"settings": "tab:red", "resumed": "tab:purple"}


def plot(histories: Histories, target: Path, title: str = "") -> None:
    """Draw to `target` (.png, .svg, .pdf by its ending). Raises DataError where there is nothing to draw."""
    curves = curves_of(histories)
    if not curves.t_s:
        raise DataError(f"{target.name}: the history has no step to draw", "Train first: gradferry train RUN.yml")
    figure = _figure(curves, title)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(target, dpi=120)
    except (OSError, ValueError) as error:
        raise DataError(f"{target}: cannot be drawn: {error}", "Name a file such as run.png or run.svg") from None


def _figure(curves: Curves, title: str) -> Any:
    try:
        from matplotlib.figure import Figure  # without pyplot: no window system, no state shared between figures
    except ImportError:
        raise DataError("drawing needs matplotlib, which is not installed", "pip install 'gradferry[plot]'") from None
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    above.plot(curves.t_s, _gaps(curves.loss), color="tab:blue", linewidth=1.2, label="loss")
    above.set_ylabel("training loss")
    above.set_ylim(bottom=0)
    if curves.accuracy:
        right = above.twinx()
        right.plot(*zip(*curves.accuracy, strict=True), "o-", color="tab:green", markersize=3, linewidth=1)
        right.set_ylabel("held-out accuracy", color="tab:green")
        right.set_ylim(0, 1.02)
    speed = _gaps(curves.samples_per_s)
    below.plot(curves.t_s, speed, color="tab:orange", linewidth=0.8, alpha=0.35)
    below.plot(curves.t_s, _medians(speed), color="tab:orange", linewidth=1.4)
    below.set_ylabel("samples / s")
    below.set_ylim(bottom=0)
    below.set_xlabel("seconds since the start")
    for number, mark in enumerate(curves.marks):
        for axes in (above, below):
            axes.axvline(mark.t_s, color=_COLOURS[mark.kind], linestyle="--", linewidth=1)
        place = (mark.t_s, 0.75 - 0.08 * (number % 6))  # below the accuracy, and not on top of one another
        above.annotate(
            mark.text, place, xycoords=above.get_xaxis_transform(), xytext=(4, 0), textcoords="offset points",
            color=_COLOURS[mark.kind], fontsize=8, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip
    figure.suptitle(title or f"{len(curves.t_s)} optimizer steps", fontsize=11, parse_math=False)
    return figure


def _medians(values: list[float], reach: int = 4) -> list[float]:
    """The middle one of each value and its neighbours."""
    return [median(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]


def _gaps(values: tuple[float | None, ...]) -> list[float]:
    """What was not finite leaves a gap in the line."""
    return [float("nan") if value is None else value for value in values]
