"""Sets of sample positions as sorted, half-open ranges: small in memory and in JSON, exact to compare.

A position counts on one line through all epochs: `epoch × samples + place in that epoch's order`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

Span = tuple[int, int]  # [start, stop)
Spans = tuple[Span, ...]


def size(spans: Iterable[Span]) -> int:
    """How many positions."""
    return sum(stop - start for start, stop in spans)


def joined(spans: Iterable[Span]) -> Spans:
    """The same positions in the same order, neighbours that touch made one, empty ones left out."""
    out: list[Span] = []
    for start, stop in spans:
        if start == stop:
            continue
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], stop)
        else:
            out.append((start, stop))
    return tuple(out)


def split(spans: Iterable[Span], count: int) -> tuple[Spans, Spans]:
    """The first `count` positions and the rest, both in the order given."""
    head: list[Span] = []
    tail: list[Span] = []
    for start, stop in spans:
        cut = min(stop, start + count)
        count -= cut - start
        head.append((start, cut))
        tail.append((cut, stop))
    return joined(head), joined(tail)


def union(*parts: Iterable[Span]) -> Spans:
    """All positions of `parts`, sorted. Raises ValueError where two of them share a position."""
    ordered = sorted(span for part in parts for span in part if span[0] < span[1])
    for (_, stop), (start, _) in pairwise(ordered):
        if start < stop:
            raise ValueError(f"position {start} is there twice")
    return joined(ordered)
