"""Text as bytes: documents are put one after the other and cut into sequences for a language model over 256 bytes."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from trainer.data.samples import Column, Samples
from trainer.errors import DataError

EVAL_FRACTION = 0.1
END = b"\0"  # between documents; no text holds it


def text_of_files(path: Path, sequence: int, eval_fraction: float | None, say: Callable[[int, int], None]) -> Samples:
    """A text file, or every file below a folder in the order of their names. Raises DataError for what is not text."""
    paths = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    documents = []
    for number, file in enumerate(paths):
        documents.append((str(file.relative_to(path)) if path.is_dir() else file.name, _text(file)))
        say(number + 1, len(paths))
    return sequences(documents, f"text of {path.name}", sequence, eval_fraction)


def sequences(
    documents: Iterable[tuple[str, bytes]], source: str, sequence: int, eval_fraction: float | None
) -> Samples:
    """tokens [n, sequence + 1] of bytes; neighbours share one, so that every byte is predicted once.

    Whole documents are held out, chosen by a hash of their names; a single document is cut, its end held out.
    """
    fraction = EVAL_FRACTION if eval_fraction is None else eval_fraction
    named = list(documents)
    aside = {name for name, _ in named if _place(name) < fraction}
    train = END.join(text for name, text in named if name not in aside)
    held_out = END.join(text for name, text in named if name in aside)
    if min(len(train), len(held_out)) <= sequence:
        whole = END.join(text for _, text in named)
        cut = round(len(whole) * (1 - fraction))
        train, held_out = whole[:cut], whole[cut:]
    if min(len(train), len(held_out)) <= sequence:
        raise DataError(
            f"{source}: {len(train) + len(held_out)} bytes are too few for sequences of {sequence + 1} bytes",
            "Give more text, or a smaller --sequence",
        )
    return Samples("tokens", source, {"tokens": _cut(train, sequence)}, {"tokens": _cut(held_out, sequence)})


def read_text(path: Path) -> bytes | None:
    """The file's bytes, unpacked where it is gzip; None where it is not UTF-8 text."""
    raw = path.read_bytes()
    try:
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        text.decode("utf-8")
    except (OSError, EOFError, ValueError):
        return None
    return None if END in text else text


def _text(path: Path) -> bytes:
    try:
        text = read_text(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}", "Give text files that you may read") from None
    if text is None:
        raise DataError(f"{path}: not UTF-8 text", "Take it out of the folder, or convert it")
    return text


def _place(name: str) -> float:
    """A number in [0, 1) that depends on the name alone."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big") / 2**48


def _cut(text: bytes, sequence: int) -> Column:
    values = np.frombuffer(text, np.uint8)
    count = (len(values) - 1) // sequence
    return np.lib.stride_tricks.sliding_window_view(values, sequence + 1)[: count * sequence : sequence].copy()


def in_order(folders: Iterable[Path]) -> Iterator[Path]:
    """Every plain file below `folders`, folder by folder, in the order of their names; links are not followed."""
    for folder in folders:
        yield from sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
