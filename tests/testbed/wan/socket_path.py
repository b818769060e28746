"""Unix sockets under long paths: the kernel takes 107 bytes, a clone may lie deeper than that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def short(path: Path) -> Iterator[str]:
    """A name for `path` that is short for as long as the block lasts: through a handle on its folder."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
