"""`pytest tests/contracts --cases DIR` runs any folder of cases; without it the two that are here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", metavar="DIR", help="folder of accumulation cases to run instead of our own")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case_path" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("--cases", default=None)
    folders = [Path(given)] if given else [HERE / "cases", HERE / "more"]
    paths = [path for folder in folders for path in sorted(folder.glob("[0-9]*.json"))]
    if not paths:
        raise pytest.UsageError(f"{', '.join(map(str, folders))}: no case (NN-name.json) in it")
    metafunc.parametrize("case_path", paths, ids=[path.stem for path in paths])


@pytest.fixture
def case(case_path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(case_path.read_text())
    return found
