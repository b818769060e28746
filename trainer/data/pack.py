"""Many small files -> one folder that is sent once and read fast: train.h5, eval.h5, index.json.

The same samples give the same bytes, so a second pack changes nothing and sends nothing. A folder appears whole or not
at all: it is written beside its place and moved there.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import h5py

from trainer.config import Data
from trainer.data.index import INDEX, FieldInfo, FileInfo, Index, Split, read_index, sha256_of, verify
from trainer.data.samples import Column, Samples
from trainer.data.sources import Options, Say, read_source
from trainer.errors import DataError


@dataclass(frozen=True)
class Packed:
    """What a pack led to. changed: False where the folder held just these samples already."""

    folder: Path
    index: Index
    changed: bool


def pack(source: str, folder: Path, options: Options, say: Say = lambda done, total: None) -> Packed:
    """Pack `source` into `folder`. Raises DataError; then `folder` is as it was."""
    if folder.exists() and not (folder / INDEX).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder}: exists and is not packed data", "Name a new folder, or remove this one")
    samples = read_source(source, options, say)
    with _alone(folder) as workshop:
        index = _write(samples, workshop)
        if _same(folder, index):
            return Packed(folder, index, changed=False)
        _move_into_place(workshop, folder)
    return Packed(folder, index, changed=True)


def ensure_packed(data: Data, say: Callable[[str], None], progress: Say = lambda done, total: None) -> None:
    """Pack the built-in source `data.pack` where `data.path` is not there yet, and `say` so."""
    folder = Path(data.path)
    if data.pack is None or (folder / INDEX).exists():
        return
    say(f"{folder} is not there yet: packing {data.pack}")
    packed = pack(data.pack, folder, Options(), progress)
    say(f"{folder}: {packed.index.describe()}")


def _write(samples: Samples, folder: Path) -> Index:
    splits: dict[Split, FileInfo] = {}
    parts: tuple[tuple[Split, Mapping[str, Column]], ...] = (("train", samples.train), ("eval", samples.held_out))
    for name, columns in parts:
        path = folder / f"{name}.h5"
        _write_file(path, columns)
        count = len(next(iter(columns.values())))
        splits[name] = FileInfo(file=path.name, samples=count, size_bytes=path.stat().st_size, sha256=sha256_of(path))
    fields = {
        name: FieldInfo(shape=column.shape[1:], dtype=column.dtype.str, scale=samples.scale.get(name))
        for name, column in samples.train.items()
    }
    index = Index(kind=samples.kind, source=samples.source, fields=fields, splits=splits)
    (folder / INDEX).write_text(index.text(), encoding="utf-8")
    return index


def _write_file(path: Path, columns: Mapping[str, Column]) -> None:
    """Contiguous fields (the reader maps them), no times of writing (the bytes depend on the samples alone)."""
    with h5py.File(path, "w", libver=("v108", "v108"), track_order=False) as file:
        for name in sorted(columns):
            file.create_dataset(name, data=columns[name], track_times=False)
    with path.open("rb") as written:
        os.fsync(written.fileno())


@contextmanager
def _alone(folder: Path) -> Iterator[Path]:
    """An empty folder to work in, beside `folder`; one process at a time, and what a killed one left is cleared."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    workshop = folder.parent / f".{folder.name}.packing"
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(workshop, ignore_errors=True)
        workshop.mkdir()
        try:
            yield workshop
        finally:
            shutil.rmtree(workshop, ignore_errors=True)


def _same(folder: Path, index: Index) -> bool:
    try:
        if read_index(folder) != index:
            return False
        verify(folder, index)
    except DataError:
        return False
    return True


def _move_into_place(workshop: Path, folder: Path) -> None:
    """A reader that has the old files open keeps them."""
    old = workshop.with_suffix(".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    workshop.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
