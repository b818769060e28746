"""Samples that a user saved with numpy: each .npy file of a folder is a field, such as x.npy and y.npy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainer.data.samples import Column, Samples, split
from trainer.errors import DataError

EVAL_FRACTION = 0.1


def arrays_of_folder(folder: Path, eval_fraction: float | None) -> Samples:
    """Fields with the same number of rows. `eval/` beside them, with the same fields, is held out where it is there.

    Raises DataError naming the file that does not fit.
    """
    columns = _columns(folder)
    if (folder / "eval").is_dir():
        held_out = _columns(folder / "eval")
        if {n: c.shape[1:] for n, c in held_out.items()} != {n: c.shape[1:] for n, c in columns.items()}:
            raise DataError(f"{folder / 'eval'}: other fields or shapes than in {folder}", "Give both the same")
        return Samples("arrays", f"arrays of {folder.name}", columns, held_out)
    train, held_out = split(columns, EVAL_FRACTION if eval_fraction is None else eval_fraction)
    return Samples("arrays", f"arrays of {folder.name}", train, held_out)


def _columns(folder: Path) -> dict[str, Column]:
    columns = {path.stem: _load(path) for path in sorted(folder.glob("*.npy"))}
    if not columns:
        raise DataError(f"{folder}: no .npy files", "Save one file a field, such as x.npy and y.npy")
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        raise DataError(f"{folder}: {', '.join(f'{n}.npy has {c} rows' for n, c in counts.items())}", "Make them equal")
    return columns


def _load(path: Path) -> Column:
    try:
        array: Column = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("an archive (.npz)")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{path}: not a plain .npy array: {str(error).splitlines()[0]}", "Save numbers, not objects"
        ) from None
    if array.ndim == 0 or array.dtype.kind not in "iufb":
        raise DataError(f"{path}: {array.dtype} of shape {array.shape}, expected numbers with one row a sample")
    return array
