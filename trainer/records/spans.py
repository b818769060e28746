"""Sets of positions as half-open spans [first, stop). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trainer.records.events import Span


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same positions as few spans in order."""
    found: list[Span] = []
    for first, stop in sorted(s for s in spans if s[0] < s[1]):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        else:
            found.append((first, stop))
    return found


def size(spans: Iterable[Span]) -> int:
    return sum(stop - first for first, stop in spans)


def missing(spans: Iterable[Span], whole: Span) -> list[Span]:
    """The positions of `whole` that are in none of `spans`."""
    found: list[Span] = []
    at = whole[0]
    for first, stop in merged(spans):
        if at < min(first, whole[1]):
            found.append((at, min(first, whole[1])))
        at = max(at, stop)
    if at < whole[1]:
        found.append((at, whole[1]))
    return found


def twice(spans: Iterable[Span]) -> Span | None:
    """The first positions that are in two of `spans`, or None."""
    last: Span | None = None
    for span in sorted(s for s in spans if s[0] < s[1]):
        if last is not None and span[0] < last[1]:
            return span[0], min(span[1], last[1])
        last = span
    return None


def text(spans: Iterable[Span]) -> str:
    """`0-8, 16-24`; the last number is not included."""
    return ", ".join(f"{first}-{stop}" for first, stop in spans)
