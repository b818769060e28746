"""Gradferry's trainer: one model, trained on hosts far apart. Start at `cli.py`; in `run.py` the parts meet."""

__version__ = "0.1.0"
