"""One case from beginning to end: legs, variants, comparison."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.contracts.adapter.counters import step_arithmetic, step_events
from tests.contracts.adapter.keys import check_keys
from tests.contracts.adapter.legs import legs_of
from tests.contracts.adapter.models import Unsupported
from tests.contracts.adapter.outcome import Outcome
from tests.contracts.adapter.replica import Variant
from tests.contracts.adapter.runner import Mode, run_leg
from tests.contracts.cases.reference import differences

LOW_PRECISION_TOLERANCE = 1e-4  # the cases' README: with reduced precision this is still enough


def disagreements(case: Mapping[str, Any], folder: Path, mode: Mode) -> list[str]:
    """Everything in which the trainer differs from what the case expects. Raises Unsupported."""
    given, expect, tolerance = case["given"], case["expect"], case["tolerance"]
    kind = given.get("kind", "train")
    began = time.monotonic()
    if kind == "step_arithmetic":
        return differences(expect, step_arithmetic(given), tolerance)
    if kind == "step_events":
        return differences(expect, step_events(given, folder), tolerance)
    if kind != "train":
        raise Unsupported(f"given.kind = {kind}")
    check_keys(given)
    found = []
    for number, variant in enumerate(variants_of(given)):
        allowed = max(tolerance, LOW_PRECISION_TOLERANCE) if variant.low_precision else tolerance
        outcome = run_case(given, folder / f"variant-{number}", mode, variant)
        differing = [*differences(expect, outcome.values(), allowed), *outcome.began_anew()]
        found += [f"{variant}: {d}" for d in differing]
    limit = given.get("time_limit_s")
    if limit is not None and time.monotonic() - began > limit:
        found.append(f"took {time.monotonic() - began:.1f} s, at most {limit} s")
    return found


def run_case(given: Mapping[str, Any], folder: Path, mode: Mode, variant: Variant) -> Outcome:
    """What came of one run through all legs."""
    folder.mkdir(parents=True)
    legs = legs_of(given)
    seen = [run_leg(given, leg, folder, variant, mode) for leg in legs]
    return Outcome(given, legs, seen, folder)


def variants_of(given: Mapping[str, Any]) -> list[Variant]:
    """As it stands; with rows padded further where padding is the subject; in low precision where that is."""
    plain = Variant()
    found = [plain]
    if "padding" in given:
        longest = max(map(len, given["data"]["sequences"]))
        found.append(replace(plain, pad_to=max(8, longest + 2)))
    if "compute_dtype" in given:
        found.append(replace(plain, low_precision=True))
    return found
