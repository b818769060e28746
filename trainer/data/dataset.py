"""Packed samples as batches of tensors, by sample id."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.data.index import FieldInfo, Index, Split, read_index, verify
from trainer.errors import DataError


class Dataset:
    """One split of a packed folder. Sample ids are 0 … len-1; reading is safe from several threads."""

    def __init__(self, folder: Path, index: Index, split: Split) -> None:
        self.folder, self.index, self.split = folder, index, split
        path = folder / index.splits[split].file
        self._columns = {name: _open_column(path, name) for name in index.fields}
        self._samples = index.splits[split].samples
        for name, column in self._columns.items():
            wanted = (self._samples, *index.fields[name].shape)
            if column.shape != wanted:
                raise DataError(
                    f"{path}: {name} has the shape {column.shape}, the index says {wanted}", "Pack it again"
                )

    def __len__(self) -> int:
        return self._samples

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]:
        """Field -> tensor [len(ids), ...] in the order of `ids`: int64 where whole numbers are stored, else float32.

        A stored `scale` is applied. Raises DataError for an id that is not there.
        """
        wanted = np.asarray(ids, dtype=np.int64)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= self._samples):
            raise DataError(f"{self.folder}: sample ids {wanted.min()}-{wanted.max()} asked, {self._samples} are there")
        return {name: _tensor(column[wanted], self.index.fields[name]) for name, column in self._columns.items()}

    @cached_property
    def held_out(self) -> Dataset:
        """The split that is never trained on."""
        return Dataset(self.folder, self.index, "eval")


def open_dataset(path: str | Path, split: Split = "train") -> Dataset:
    """Open a packed folder and compare its files with their checksums. Raises DataError with the cure."""
    folder = Path(path)
    index = read_index(folder)
    verify(folder, index)
    return Dataset(folder, index, split)


def _open_column(path: Path, name: str) -> NDArray[np.generic]:
    """The field as an array that lives in the file.

    Packed fields are contiguous (no chunks, no compression), so they can be mapped: any sample costs one page read,
    without HDF5's lock and without its slow selection of scattered rows.
    """
    try:
        with h5py.File(path, "r") as file:
            stored = file[name]
            offset = stored.id.get_offset()
            shape, dtype = stored.shape, stored.dtype
    except (OSError, KeyError) as error:
        raise DataError(f"{path}: field `{name}` cannot be read: {error}", "Pack it again") from None
    if 0 in shape:
        return np.empty(shape, dtype)
    if offset is None:
        raise DataError(f"{path}: field `{name}` is chunked, expected it contiguous", "Pack it with gradferry pack")
    return np.memmap(path, dtype, "r", offset, shape)


def _tensor(values: NDArray[np.generic], field: FieldInfo) -> Tensor:
    if field.scale is not None:
        return torch.from_numpy(values.astype(np.float32) * np.float32(field.scale))
    whole = np.issubdtype(values.dtype, np.integer) or values.dtype == np.bool_
    return torch.from_numpy(values.astype(np.int64 if whole else np.float32))
