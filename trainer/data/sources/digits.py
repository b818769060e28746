"""scikit-learn's digits: 1797 images of 8 × 8 (Alpaydin and Kaynak 1998, UCI archive), shipped in its package."""

from __future__ import annotations

import numpy as np

from trainer.data.samples import Samples, split
from trainer.errors import DataError

EVAL_FRACTION = 0.2


def digits(eval_fraction: float | None = None) -> Samples:
    """x [n, 8, 8] in sixteenths of white, y [n] the digit. Raises DataError where scikit-learn is not installed."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            "source digits: scikit-learn is not installed here", "pip install 'gradferry[examples]', or pack elsewhere"
        ) from None
    loaded = load_digits()
    columns = {"x": loaded.images.astype(np.uint8), "y": loaded.target.astype(np.uint8)}
    train, held_out = split(columns, EVAL_FRACTION if eval_fraction is None else eval_fraction)
    return Samples("images", "scikit-learn's digits", train, held_out, {"x": 1 / 16})
