"""Dealing positions out to members, and taking them from the head and the tail of a member's stock. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainer.data.committed import Record, Terms, host_of
from trainer.data.shares import cut, quotas
from trainer.data.spans import Spans, joined, size, split

Stock = Mapping[str, tuple["Portion", ...]]


@dataclass(frozen=True)
class Portion:
    """One member's piece of one deal. `among`: how many members share that whole global window; 0: it is not such."""

    spans: Spans
    deal: int = 0
    among: int = 0

    @property
    def size(self) -> int:
        return size(self.spans)


@dataclass(frozen=True)
class Dealt:
    """What `refill` leaves."""

    pool: Spans
    frontier: int
    stock: dict[str, tuple[Portion, ...]]
    deals: int


def weights(members: Sequence[str], terms: Terms, speeds: Mapping[str, float]) -> list[float]:
    """What each member's share is proportional to."""
    return [speeds.get(m, 1.0) if terms.elastic else 1.0 for m in members]


def positions(portions: Sequence[Portion]) -> Spans:
    """All positions of `portions` in their order."""
    return joined(span for portion in portions for span in portion.spans)


def aligned(counting: Sequence[str], stock: Stock) -> bool:
    """Whether the next portions of `counting` are together the pieces of one global window."""
    first = [stock[m][0] for m in counting if stock.get(m)]
    return len(first) == len(counting) and all(p.deal == first[0].deal and p.among == len(first) for p in first)


def quota_of(member: str, counting: Sequence[str], stock: Stock, terms: Terms, speeds: Mapping[str, float]) -> int:
    """Samples of `member` in the next step.

    Where the next portions of all are the pieces of one global window, that piece, so that steps are whole windows in
    order. Where they are not (somebody was away, joined, left; the batch was changed), its share of a global batch.
    """
    if aligned(counting, stock):
        return stock[member][0].size
    shares = quotas(terms.global_batch, terms.micro_batch, weights(counting, terms, speeds))
    return shares[counting.index(member)]


def without_head(portions: Sequence[Portion], count: int) -> tuple[Portion, ...]:
    """`portions` after a step with `count` samples of them. A step without samples uses up an empty piece."""
    rest = list(portions)
    if count == 0 and rest and rest[0].size == 0:
        rest.pop(0)
    while count:
        if rest[0].size <= count:
            count -= rest.pop(0).size
        else:
            rest[0] = Portion(split(rest[0].spans, count)[1])
            count = 0
    return tuple(rest)


def without_tail(portions: tuple[Portion, ...], keep: int | None) -> tuple[tuple[Portion, ...], Spans]:
    """The first `keep` samples of `portions` (None: all), and the positions beyond them. Keeping none keeps an empty
    first piece: that is the next step's, and the others have theirs."""
    if keep is None or not portions:
        return portions, ()
    if keep == 0:
        return (portions[:1], positions(portions)) if not portions[0].size else ((), positions(portions))
    kept: list[Portion] = []
    for at, portion in enumerate(portions):
        head, tail = split(portion.spans, keep)
        kept.append(replace(portion, spans=head) if not tail else Portion(head))
        keep -= size(head)
        if keep == 0:
            return tuple(kept), (*tail, *positions(portions[at + 1 :]))
    return tuple(kept), ()


def loose(stock: Stock) -> dict[str, tuple[Portion, ...]]:
    """The same stock, no longer cut for a global batch that has changed."""
    return {m: tuple(replace(p, among=0) for p in portions) for m, portions in stock.items()}


def taken_back(stock: Stock, record: Record) -> list[str]:
    """Members whose loan ends with `record`: absent, and over the bound for all who count, or followed by a new life.

    Who is absent was not in this record's generation, and the fate of its windows was settled when that became active.
    """
    here = {c.member for c in record.contributions}
    hosts = {host_of(m) for m in here}
    judges = [set(c.expired) for c in record.contributions if c.counting]
    expired = set.intersection(*judges) if judges else set()
    return [m for m in stock if m not in here and (m in expired or host_of(m) in hosts)]


def refill(
    pool: Spans,
    frontier: int,
    end: int,
    epoch: int,
    stock: Stock,
    counting: Sequence[str],
    terms: Terms,
    speeds: Mapping[str, float],
    deals: int,
) -> Dealt:
    """Deal global windows until each of `counting` has `terms.ahead` portions, or nothing is left before `end`.

    A window takes what is in the pool first, then goes on at the frontier, and does not cross the end of an epoch
    (`epoch` samples long). Who has enough is left out; the others then get their shares of a window.
    """
    dealt = {m: stock.get(m, ()) for m in {*stock, *counting}}
    parts = dict(
        zip(counting, quotas(terms.global_batch, terms.micro_batch, weights(counting, terms, speeds)), strict=True)
    )
    while (needy := [m for m in counting if len(dealt[m]) < terms.ahead]) and (pool or frontier < end):
        want = sum(parts[m] for m in needy)
        edge = ((pool[0][0] if pool else frontier) // epoch + 1) * epoch
        old, pool = split(pool, min(want, sum(max(0, min(b, edge) - a) for a, b in pool)))
        stop = max(frontier, min(frontier + want - size(old), edge, end))
        window = (*old, (frontier, stop))
        pieces = cut(window, quotas(size(window), terms.micro_batch, weights(needy, terms, speeds)))
        among = len(needy) if len(needy) == len(counting) else 0
        for m, piece in zip(needy, pieces, strict=True):
            dealt[m] += (Portion(piece, deals, among),)
        frontier, deals = stop, deals + 1
    return Dealt(pool, frontier, dealt, deals)
