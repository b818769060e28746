"""The harness itself: what it does not know fails, and no folder is too empty to fail."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.adapter.case import disagreements
from tests.contracts.adapter.models import Unsupported

HERE = Path(__file__).parent


@pytest.fixture
def known() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "cases" / "05-last-window-scale.json").read_text())
    return found


@pytest.mark.parametrize(
    "place, value",
    [
        (("given", "surprise"), 1),
        (("given", "kind"), "surprise"),
        (("given", "model", "kind"), "surprise"),
        (("given", "optimizer", "kind"), "lion"),
        (("given", "accumulation", "at_epoch_end"), "carry"),
        (("given", "stream", "shuffle"), True),
        (("given", "schedule"), {"kind": "surprise"}),
    ],
)
def test_what_the_adapter_does_not_know_fails(
    known: dict[str, Any], place: tuple[str, ...], value: object, tmp_path: Path
) -> None:
    case = copy.deepcopy(known)
    section = case
    for name in place[:-1]:
        section = section[name]
    section[place[-1]] = value
    with pytest.raises(Unsupported):
        disagreements(case, tmp_path / "state", "threads")


def test_an_expectation_that_nobody_can_answer_fails(known: dict[str, Any], tmp_path: Path) -> None:
    known["expect"]["surprise"] = 1
    assert disagreements(known, tmp_path / "state", "threads") == [
        "Variant(pad_to=None, low_precision=False): .surprise: missing"
    ]


def test_a_value_off_by_more_than_the_tolerance_fails(known: dict[str, Any], tmp_path: Path) -> None:
    known["expect"]["grad_norm"][0] += 2e-6
    assert len(disagreements(known, tmp_path / "state", "threads")) == 1


def test_an_empty_folder_of_cases_fails(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", str(HERE), "--cases", str(tmp_path), "-q", "-p", "no:cacheprovider"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1])
    assert ended.returncode != 0
    assert "no case" in ended.stdout + ended.stderr
