"""Where samples come from: built-in sources by name, and what users bring."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.data.samples import Samples
from trainer.data.sources.arrays import arrays_of_folder
from trainer.data.sources.debian_docs import debian_docs
from trainer.data.sources.digits import digits
from trainer.data.sources.text import text_of_files
from trainer.errors import DataError

Say = Callable[[int, int], None]  # (done, of how many)


@dataclass(frozen=True)
class Options:
    """sequence: tokens that a text sample predicts. eval_fraction: share of the samples that is held out."""

    sequence: int = 128
    eval_fraction: float | None = None


BUILT_IN: Mapping[str, Callable[[Options, Say], Samples]] = {
    "digits": lambda options, say: digits(options.eval_fraction),
    "debian-docs": lambda options, say: debian_docs(options.sequence, options.eval_fraction, say),
}


def read_source(source: str, options: Options, say: Say) -> Samples:
    """A built-in source, a text file, a folder of text files, or a folder of .npy files. Raises DataError."""
    if source in BUILT_IN:
        return BUILT_IN[source](options, say)
    path = Path(source)
    if not path.exists():
        near = difflib.get_close_matches(source, BUILT_IN, n=1, cutoff=0.6)
        hint = f"Did you mean `{near[0]}`? " if near else ""
        raise DataError(
            f"source {source}: no such file or folder, and not one of {', '.join(BUILT_IN)}",
            f"{hint}Give text files, or a folder with .npy files such as x.npy and y.npy",
        )
    if path.is_dir() and any(path.glob("*.npy")):
        return arrays_of_folder(path, options.eval_fraction)
    return text_of_files(path, options.sequence, options.eval_fraction, say)
