"""What a case asks for, from what the replicas saw and from the histories that the trainer wrote."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.contracts.adapter.legs import Leg, course_of
from tests.contracts.adapter.replica import Seen, events_of

Event = dict[str, Any]


class Outcome:
    """`seen`: for each leg, of each replica."""

    def __init__(self, given: Mapping[str, Any], legs: list[Leg], seen: list[list[Seen]], folder: Path) -> None:
        self._given, self._legs, self._seen = given, legs, seen
        self._histories = [events_of(folder, rank) for rank in range(max(leg.world for leg in legs))]
        self._course, self._entries = course_of(given)

    def values(self) -> dict[str, Any]:
        """Every key of `expect` that a training case can have."""
        last = self._seen[-1][0]
        steps = list(surviving(self._histories[0], "step"))
        windows = list(surviving(self._histories[0], "step", "skipped"))
        used = Counter(sample for number in range(len(steps)) for sample in self._samples_of_step(number))
        return {
            "params": last.params,
            "ema_params": last.ema_params,
            "replica_max_difference": self._largest_difference(),
            "optimizer_steps": last.step,
            "windows_skipped": last.skipped,
            "optimizer_state_steps": last.updates,
            "lr_used": [e["lr"] for e in steps],
            "grad_norm": [e["grad_norm"] for e in steps],
            "window_loss": [e["loss"] for e in steps],
            "samples_per_step": [e["stop"] - e["start"] for e in steps],
            "times_each_sample_used": [used[sample] for sample in sorted(used)],
            "samples_after_resume": self._samples_after_resume(),
            "scale_used": [e["scale"] for e in windows],
            "scale_end": last.scale,
            "gradient_sync_rounds": sum(leg[0].rounds for leg in self._seen),
            "elements_reduced_per_replica": sum(leg[0].elements for leg in self._seen),
            "micro_batches_per_replica": [self._plan(number) for number in range(len(self._legs))],
            "bn_running_mean": last.buffers.get("running_mean"),
            "bn_running_var": last.buffers.get("running_var"),
            "bn_batches_tracked": last.buffers.get("num_batches_tracked"),
            "finite": all(math.isfinite(v) for values in last.params.values() for v in _flat(values)),
        }

    def began_anew(self) -> list[str]:
        """Legs that should have gone on from a checkpoint and did not: a whole new run can give the same numbers."""
        resumes = sum(e["event"] == "resumed" for e in self._histories[0])
        before = self._legs[:-1]
        expected = sum(bool(leg.stop_after) or bool(leg.killed_at and leg.killed_at[0]) for leg in before)
        return [] if resumes == expected else [f"resumed {resumes} times, expected {expected}"]

    def _largest_difference(self) -> float:
        """Over the replicas of the last leg."""
        first = self._seen[-1][0].params
        others = [seen.params for seen in self._seen[-1][1:]]
        pairs = (zip(_flat(first[n]), _flat(other[n]), strict=True) for other in others for n in first)
        return max((abs(a - b) for pair in pairs for a, b in pair), default=0.0)

    def _samples_of_step(self, number: int) -> list[int]:
        """Sample numbers in the order of the replicas."""
        found = []
        for history in self._histories:
            steps = [e for e in surviving(history, "step") if e["step"] == number + 1]
            for event in steps:
                for start, stop in event.get("read", ()):
                    ids = self._course.ids(event["epoch"], range(start, stop))
                    found += [self._entries[i].sample for i in ids]
        return found

    def _samples_after_resume(self) -> list[int]:
        resumed = [e["step"] for e in self._histories[0] if e["event"] == "resumed"]
        steps = [e["step"] for e in surviving(self._histories[0], "step")]
        return [s for n in range(resumed[-1], max(steps)) for s in self._samples_of_step(n)] if resumed else []

    def _plan(self, leg: int) -> list[int]:
        """Micro-batches per replica in the first window of a leg, largest first."""
        counts = []
        for history in self._histories[: self._legs[leg].world]:
            starts = [i for i, e in enumerate(history) if e["event"] == "started"]
            own = [e for e in history[starts[leg] :] if e["event"] in ("step", "skipped")]
            counts.append(len(own[0].get("read", ())) if own else 0)
        return sorted(counts, reverse=True)


def surviving(history: list[Event], *names: str) -> Iterator[Event]:
    """Events of steps that are in the parameters: a resume at step s voids what came after s."""
    before: list[Event] = []
    kept: list[Event] = []
    for event in history:
        if event["event"] == "started":
            before, kept = kept, []  # a start without a resume begins anew
        elif event["event"] == "resumed":
            kept = [e for e in before if e["step"] <= event["step"]]
        elif event["event"] in names:
            kept.append(event)
    yield from kept


def _flat(values: Any) -> Iterator[float]:
    if isinstance(values, list):
        for value in values:
            yield from _flat(value)
    else:
        yield float(values)
