"""Text that a Debian or Ubuntu machine already has, for a small language model: no download, and real prose.

Where documentation was stripped (a slim image), licences, Perl's and Python's own texts make up for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trainer.data.samples import Samples
from trainer.data.sources.text import in_order, read_text, sequences
from trainer.errors import DataError

FOLDERS = tuple(
    Path(name)
    for name in (
        "/usr/share/common-licenses",
        "/usr/share/doc",
        "/usr/share/perl",
        "/usr/share/perl5",
        "/usr/lib/python3",
        "/usr/lib",
    )
)
TEXT_NAMES = ("changelog", "copyright", "readme", "news", "authors", "todo", "faq", "gpl", "lgpl", "apache", "artistic")
TEXT_ENDS = (".txt", ".md", ".rst", ".pod", ".pm", ".py", ".html")
ENOUGH_BYTES = 2_000_000
LEAST_BYTES = 100_000
LARGEST_SHARE = 20_000  # of one document: a single long changelog must not be half of the text


def debian_docs(
    sequence: int,
    eval_fraction: float | None,
    say: Callable[[int, int], None],
    *,
    folders: Sequence[Path] = FOLDERS,
    enough_bytes: int = ENOUGH_BYTES,
) -> Samples:
    """Up to `enough_bytes` of text from `folders`. The same machine gives the same samples.

    Raises DataError where there is hardly any text.
    """
    documents: list[tuple[str, bytes]] = []
    total = 0
    for name, text in _distinct(in_order(folders)):
        documents.append((name, text))
        total += len(text)
        say(min(total, enough_bytes), enough_bytes)
        if total >= enough_bytes:
            break
    if total < min(LEAST_BYTES, enough_bytes):
        where = ", ".join(map(str, folders))
        raise DataError(f"source debian-docs: only {total} bytes of text in {where}", "Pack a folder of your own text")
    return sequences(documents, "text that the distribution ships", sequence, eval_fraction)


def _distinct(paths: Iterator[Path]) -> Iterator[tuple[str, bytes]]:
    """Documents by name; the same text under many names (a licence in each package) counts once."""
    seen: set[bytes] = set()
    for path in paths:
        name = path.name.lower()
        if not (name.startswith(TEXT_NAMES) or name.removesuffix(".gz").endswith(TEXT_ENDS)):
            continue
        try:
            text = read_text(path)
        except OSError:  # not ours to read: the distribution has enough others
            continue
        if not text:
            continue
        text = text[:LARGEST_SHARE].decode("utf-8", "ignore").encode()  # not in the middle of a character
        mark = hashlib.sha256(text).digest()
        if mark not in seen:
            seen.add(mark)
            yield str(path), text
