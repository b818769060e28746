"""What a packed folder says about itself: `index.json`, and whether the files are still what it says.

data/digits/  train.h5  eval.h5  index.json
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainer.errors import DataError

SCHEMA = 1
INDEX = "index.json"
_MARK = ".verified.json"
_PACK_AGAIN = "Pack it again: gradferry pack SOURCE"

Split = Literal["train", "eval"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FieldInfo(_Part):
    """One tensor of a sample. `shape` without the sample dimension; `scale`: what stored integers are multiplied by."""

    shape: tuple[int, ...]
    dtype: str
    scale: float | None = None


class FileInfo(_Part):
    """One file of the folder."""

    file: Annotated[str, Field(pattern=r"^[\w.-]+$")]
    samples: Annotated[int, Field(ge=0)]
    size_bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Index(_Part):
    """`index.json`. kind: images, tokens or arrays. source: where the samples come from, for a person to read."""

    schema_version: Literal[1] = 1
    kind: Literal["images", "tokens", "arrays"]
    source: str
    fields: Mapping[str, FieldInfo]
    splits: Mapping[Split, FileInfo]

    def describe(self) -> str:
        """One line for a person."""
        counts = ", ".join(f"{info.samples} {name}" for name, info in sorted(self.splits.items(), reverse=True))
        size = sum(info.size_bytes for info in self.splits.values())
        return f"{self.source}: {counts} samples, {size / 1e6:.1f} MB"

    def text(self) -> str:
        """The file's content."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"


def read_index(folder: Path) -> Index:
    """The index of a packed folder. Raises DataError where there is none or it cannot be read."""
    path = folder / INDEX
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        seen = "no such folder" if not folder.exists() else f"no {INDEX} in it, so it is not packed data"
        raise DataError(f"data.path = {folder}: {seen}", f"Make it: gradferry pack SOURCE {folder}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}", f"{_PACK_AGAIN} {folder}") from None
    try:
        values = json.loads(text)
        version = values.get("schema_version")
        if version != SCHEMA:
            raise DataError(
                f"{path}: schema version {version}, this gradferry reads {SCHEMA}", f"{_PACK_AGAIN} {folder}"
            )
        index = Index.model_validate(values)
        if set(index.splits) != {"train", "eval"}:
            raise ValueError(f"splits {', '.join(index.splits) or 'none'}, expected train and eval")
        return index
    except (ValueError, AttributeError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path}: damaged ({reason})", f"{_PACK_AGAIN} {folder}") from None


def verify(folder: Path, index: Index) -> None:
    """Compare each file with its size and sha256. Raises DataError that names the first one that differs.

    What was compared is remembered beside the files (size, time and inode of each), so that a restart does not read
    everything again; a folder that cannot be written to is compared every time.
    """
    stamps = {info.file: _stamp(folder, info) for info in index.splits.values()}
    wanted = {"index": hashlib.sha256(index.text().encode()).hexdigest(), "files": stamps}
    if _read_mark(folder) == wanted:
        return
    for info in index.splits.values():
        seen = sha256_of(folder / info.file)
        if seen != info.sha256:
            raise DataError(
                f"{folder / info.file}: sha256 is {seen[:12]}…, {INDEX} says {info.sha256[:12]}…: the file is damaged",
                f"{_PACK_AGAIN} {folder}, or copy the file again",
            )
    _write_mark(folder, wanted)


def sha256_of(path: Path) -> str:
    """Hexadecimal digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(folder: Path, info: FileInfo) -> list[int]:
    path = folder / info.file
    try:
        seen = path.stat()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}, but {INDEX} lists it", f"{_PACK_AGAIN} {folder}") from None
    if seen.st_size != info.size_bytes:
        raise DataError(
            f"{path}: {seen.st_size} bytes, {INDEX} says {info.size_bytes}: the file is cut short or altered",
            f"{_PACK_AGAIN} {folder}, or copy the file again",
        )
    return [seen.st_size, seen.st_mtime_ns, seen.st_ino]


def _read_mark(folder: Path) -> object:
    try:
        return json.loads((folder / _MARK).read_bytes())
    except (OSError, ValueError):
        return None


def _write_mark(folder: Path, mark: object) -> None:
    temporary = folder / f"{_MARK}.{os.getpid()}"
    with contextlib.suppress(OSError):  # a folder that cannot be written to: compared again at the next start
        temporary.write_text(json.dumps(mark), encoding="utf-8")
        temporary.replace(folder / _MARK)
        return
    with contextlib.suppress(OSError):
        temporary.unlink()
