"""What accumulation costs: our loop beside a bare PyTorch loop, Accelerate and Lightning Fabric.

    python -m bench.accumulation [--windows 200] [--models tiny-gpt,tiny-bert] [--out artifacts/bench]

Windows of the four are interleaved, one thread; a figure is the ratio of times of neighbouring windows, its median, and
a bootstrap interval of that median. Beside the clock's ratios stand those of processor time (`cpu_...`), which other
work on the machine disturbs less. Writes accumulation.json and accumulation.png.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from bench.contestants import CONTESTANTS
from bench.models import SUBJECTS, Subject
from bench.turns import Turns

WARM_UP = 5
RESAMPLES = 2000


def main() -> None:
    arguments = _arguments()
    torch.set_num_threads(1)
    models = {name: measure(SUBJECTS[name], arguments.windows, arguments.seed) for name in arguments.models.split(",")}
    report = {"windows": arguments.windows, "seed": arguments.seed, "machine": _machine(), "models": models}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "accumulation.json").write_text(json.dumps(report, indent=2) + "\n")
    draw(models, arguments.out / "accumulation.png")
    for name, found in models.items():
        ratios = {key: value["median"] for key, value in found.items() if "ours_over" in key}
        print(name, {key: round(value, 4) for key, value in ratios.items()}, found["median_step_ms"])


def measure(subject: Subject, windows: int, seed: int) -> dict[str, Any]:
    """Interleave `windows` windows of every contestant, in an order that is shuffled each round."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        turns = {name: Turns(make(subject, Path(folder) / name)) for name, make in CONTESTANTS.items()}
        times: dict[str, list[float]] = {name: [] for name in turns}
        used: dict[str, list[float]] = {name: [] for name in turns}
        try:
            for number in range(WARM_UP + windows):
                for name in chance.sample(list(turns), len(turns)):
                    seconds, processor_s = turns[name].turn()
                    if number >= WARM_UP:
                        times[name].append(seconds)
                        used[name].append(processor_s)
        finally:
            for one in turns.values():
                one.end()
    medians = {name: round(1e3 * statistics.median(values), 3) for name, values in times.items()}
    over = {f"ours_over_{name}": _ratio(times["ours"], times[name], chance) for name in times if name != "ours"}
    cpu = {f"cpu_ours_over_{name}": _ratio(used["ours"], used[name], chance) for name in used if name != "ours"}
    return {**over, **cpu, "median_step_ms": medians}


def _ratio(ours: Sequence[float], theirs: Sequence[float], chance: random.Random) -> dict[str, float]:
    """Median of the ratios of the same round, with a 95 % bootstrap interval: min and max."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]
    return {"median": statistics.median(ratios), "min": low, "max": high}


def draw(models: dict[str, Any], path: Path) -> None:
    """Ratios with their intervals, one group a model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    rivals = [key for key in next(iter(models.values())) if key.startswith("ours_over")]
    for place, rival in enumerate(rivals):
        found = [model[rival] for model in models.values()]
        middle = [one["median"] for one in found]
        spread = [[one["median"] - one["min"] for one in found], [one["max"] - one["median"] for one in found]]
        positions = [index + 0.2 * (place - 1) for index in range(len(models))]
        axes.errorbar(positions, middle, spread, fmt="o", capsize=4, label=rival.removeprefix("ours_over_"))
    axes.axhline(1.0, color="grey", linewidth=0.8)
    axes.set_xticks(range(len(models)), list(models))
    axes.set_ylabel("our step time ÷ theirs")
    axes.legend()
    figure.savefig(path, dpi=120)


def _machine() -> dict[str, str]:
    return {"python": platform.python_version(), "torch": torch.__version__, "processor": platform.machine()}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", type=int, default=200)
    parser.add_argument("--models", default=",".join(SUBJECTS))
    parser.add_argument("--out", type=Path, default=Path("artifacts/bench"))
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
