"""scikit-learn's digits: 1797 images of 8 × 8 (Alpaydin and Kaynak 1998, UCI archive), shipped in its package."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import numpy as np

from trainer.data.samples import Samples, split
from trainer.errors import DataError

EVAL_FRACTION = 0.2
_FILE = "datasets/data/digits.csv.gz"  # 64 pixels from 0 to 16 and the digit, one image a line


def digits(eval_fraction: float | None = None) -> Samples:
    """x [n, 8, 8] in sixteenths of white, y [n] the digit. Raises DataError where scikit-learn is not installed.

    Reads the file that the package ships without importing the package, which would take seconds.
    """
    package = importlib.util.find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        raise DataError(
            "source digits: scikit-learn is not installed here", "pip install 'gradferry[examples]', or pack elsewhere"
        )
    path = Path(package.submodule_search_locations[0]) / _FILE
    try:
        with gzip.open(path, "rt", encoding="ascii") as lines:
            table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    except OSError as error:
        raise DataError(f"source digits: {path}: {error.strerror}", "Install scikit-learn again") from None
    columns = {"x": table[:, :-1].reshape(-1, 8, 8), "y": table[:, -1].copy()}
    train, held_out = split(columns, EVAL_FRACTION if eval_fraction is None else eval_fraction)
    return Samples("images", "scikit-learn's digits", train, held_out, {"x": 1 / 16})
