"""Checkpoints of one host: `step-00000120/{model.safetensors,optimizer.safetensors,state.json,manifest.json}`.

A folder has its final name only when everything in it is on the disk. What a crash leaves behind starts with a dot and
is swept at the next start.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainer.checkpoint.manifest import MANIFEST, Manifest
from trainer.checkpoint.state import Snapshot
from trainer.errors import CheckpointError


@dataclass(frozen=True)
class Stored:
    """A complete checkpoint on this host."""

    step: int
    folder: Path
    manifest: Manifest

    @property
    def digest(self) -> str:
        return self.manifest.digest


class CheckpointStore:
    """The folder `checkpoints/` of a state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._damaged: set[int] = set()  # steps that `verified` found so

    def sweep(self) -> None:
        """Make the folder, and remove what a crash left half written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for rest in self.folder.glob(".step-*"):
            shutil.rmtree(rest, ignore_errors=True)

    def steps(self) -> list[int]:
        """Steps of the folders that are there, newest first; not verified."""
        found = (path.name.removeprefix("step-") for path in self.folder.glob("step-*"))
        return sorted((int(name) for name in found if name.isdigit()), reverse=True)

    def path(self, step: int) -> Path:
        return self.folder / f"step-{step:08d}"

    def write(self, snapshot: Snapshot) -> Stored:
        """Write a checkpoint; an older one of the same step is replaced. Raises OSError (a full disk), and then there
        is nothing new."""

        def fill(folder: Path) -> None:
            _save_tensors(snapshot.model, folder / "model.safetensors")
            _save_tensors(snapshot.optimizer, folder / "optimizer.safetensors")
            text = json.dumps(snapshot.values, indent=1, sort_keys=True) + "\n"
            (folder / "state.json").write_text(text, encoding="utf-8")

        return self.add(snapshot.step, fill)

    def add(self, step: int, fill: Callable[[Path], None], expect: Manifest | None = None) -> Stored:
        """A new folder whose files `fill` writes. With `expect` they must be those of that manifest."""
        temporary = self.folder / f".step-{step:08d}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir(parents=True)
            fill(temporary)
            if expect is not None:
                expect.verify(temporary)
            manifest = expect or Manifest.of(step, temporary)
            (temporary / MANIFEST).write_text(manifest.text(), encoding="utf-8")
            for path in temporary.iterdir():
                _sync(path)
            self._publish(temporary, step)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return Stored(step, self.path(step), manifest)

    def verified(self) -> Iterator[Stored | CheckpointError]:
        """Newest first: complete checkpoints whose checksums agree, and the reason for each that is not one."""
        for step in self.steps():
            try:
                manifest = Manifest.read(self.path(step))
                manifest.verify(self.path(step))
                yield Stored(step, self.path(step), manifest)
            except CheckpointError as error:
                self._damaged.add(step)
                yield error

    def newest(self) -> Stored | None:
        return next((found for found in self.verified() if isinstance(found, Stored)), None)

    def keep(self, newest: int, also: frozenset[int] = frozenset()) -> None:
        """Remove all but the `newest` whole ones and those in `also`. A damaged one does not count; it goes when as
        many whole ones are newer."""
        newer = 0
        for step in self.steps():
            if newer >= newest and step not in also:
                self.remove(step)
            else:
                newer += self._counts(step)

    def _counts(self, step: int) -> bool:
        """Whether it may be whole, without reading all of it."""
        if step in self._damaged:
            return False
        try:
            return Manifest.read(self.path(step)).complete(self.path(step))
        except CheckpointError:
            return False

    def drop_after(self, step: int) -> None:
        """Remove what is newer than `step`: the run goes on from there, so those belong to no history any more."""
        for later in self.steps():
            if later > step:
                self.remove(later)

    def remove(self, step: int) -> None:
        """By way of a name that is not a checkpoint's, so that a crash leaves no half of one."""
        doomed = self.folder / f".step-{step:08d}.removed"
        shutil.rmtree(doomed, ignore_errors=True)
        self.path(step).rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def _publish(self, temporary: Path, step: int) -> None:
        if self.path(step).exists():
            self.remove(step)
        temporary.rename(self.path(step))
        self._damaged.discard(step)
        _sync(self.folder)


def load_snapshot(stored: Stored) -> Snapshot:
    """Read a verified checkpoint. Raises CheckpointError where its content is none."""
    try:
        values = load_values(stored)
        tensors = [load_file(stored.folder / name) for name in ("model.safetensors", "optimizer.safetensors")]
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{stored.folder}: cannot be read: {error}") from None
    return Snapshot(stored.step, tensors[0], tensors[1], values)


def load_values(stored: Stored) -> dict[str, Any]:
    """state.json alone; needs no tensor."""
    values = json.loads((stored.folder / "state.json").read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise ValueError("state.json is not an object")
    return values


def _save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # it reports a full disk as an error of its own
        raise OSError(str(error)) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
