"""A correct accumulation trainer passes every case, whatever its API (cases/README in words: one step on the window as
a single batch)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contracts.adapter.case import disagreements


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_the_trainer_does_what_the_case_expects(case: dict[str, Any], mode: Any, tmp_path: Path) -> None:
    assert disagreements(case, tmp_path / "state", mode) == []
