"""Who reads which samples: a pure function of committed records.

    counted  = [0, frontier) − pool − stock of everybody            in the parameters, once
    stock    a member's allotted positions, in the order in which it reads them; of one who is away: its loan
    pool     positions that were taken back: dealt again before the frontier moves

A member reads nothing that a committed record has not allotted to it. A window is its member's to offer if and only if
its positions are in that member's stock: what was committed or taken back is no longer there (docs/adr/0061).
Positions are on one line through all epochs (spans.py), so a loan of one epoch does not hold up the next.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from pydantic import TypeAdapter

from trainer.data.allotment import (
    Portion,
    aligned,
    loose,
    positions,
    quota_of,
    refill,
    taken_back,
    without_head,
    without_tail,
)
from trainer.data.committed import Contribution, Record, Terms, chain
from trainer.data.shares import follow_speeds
from trainer.data.spans import Spans, joined, size, split, union


class LedgerError(Exception):
    """A record that cannot follow this ledger. Never a user's error: the commit rule has been broken."""


@dataclass(frozen=True)
class Ledger:
    """The state after `step` records of this history. Part of the checkpoint; `to_json` and `from_json` are exact."""

    samples: int  # per epoch
    epochs: int | None  # None: until the run stops for another reason
    terms: Terms  # in force for the next step
    incarnation: int = 0
    step: int = 0
    digest: str = ""
    frontier: int = 0  # first position that was never allotted
    pool: Spans = ()
    stock: Mapping[str, tuple[Portion, ...]] = field(default_factory=dict)
    counting: tuple[str, ...] = ()  # members that were dealt to by the last record
    speeds: Mapping[str, float] = field(default_factory=dict)
    deals: int = 0

    @property
    def total(self) -> float:
        """Positions of the whole run."""
        return math.inf if self.epochs is None else self.samples * self.epochs

    @property
    def complete(self) -> bool:
        """Every sample of every epoch is in the parameters."""
        return self.frontier == self.total and not self.pool and not any(self.held(m) for m in self.stock)

    @property
    def tail(self) -> bool:
        """Nothing is left to deal out: what one member reads is what another cannot."""
        return self.frontier == self.total and not self.pool

    def held(self, member: str) -> Spans:
        """All positions that are allotted to `member` and not committed, in its reading order."""
        return positions(self.stock.get(member, ()))

    def owns(self, member: str, read: Spans) -> bool:
        """Whether all of `read` is in the stock of `member`: neither committed nor taken back."""
        mine = sorted(self.held(member))
        return all(any(a <= start and stop <= b for a, b in mine) for start, stop in read)

    def next_window(self, member: str, read: int = 0) -> Spans:
        """What `member` reads next when it has `read` samples of its stock summed and not committed. Empty: wait.

        The first window follows the deal of its step, so that without faults every step is one global batch in order;
        further ones (local mode) follow the member's own portions.
        """
        portions = self.stock.get(member, ())
        if read == 0 and member in self.counting:
            return split(self.held(member), quota_of(member, self.counting, self.stock, self.terms, self.speeds))[0]
        for portion in portions:
            if read < portion.size:
                return split(portion.spans, read)[1]
            read -= portion.size
        return ()

    def claim(self, member: str, read: int) -> int | None:
        """Samples beyond `read` that `member` should claim. None: all; at the run's tail only its next portion.

        Unclaimed stock is dealt again at the commit, so at the tail fast members take over from slow ones.
        """
        if not self.tail:
            return None
        if member in self.counting and not aligned(self.counting, self.stock) and not self.next_window(member, read):
            return 0  # its share of a global batch is none
        return sum(p.size for p in without_head(self.stock.get(member, ()), read)[:1])

    def after(self, record: Record) -> Ledger:
        """The ledger with `record` committed. Raises LedgerError on a record that cannot follow."""
        if record.step != self.step:
            raise LedgerError(f"record of step {record.step} offered to a ledger at step {self.step}")
        stock, back = dict(self.stock), []
        for c in record.contributions:
            if c.counting:
                left = self._struck(c)
                stock[c.member], unclaimed = ((), positions(left)) if c.leaving else without_tail(left, c.claim)
                back.append(unclaimed)
        for member in taken_back(self.stock, record):
            back.append(self.held(member))
            del stock[member]
        terms = terms_after(self.terms, record)
        if terms.global_batch != self.terms.global_batch:
            stock = loose(stock)
        settled = replace(
            self,
            step=self.step + 1,
            digest=chain(self.digest, record),
            terms=terms,
            pool=union(self.pool, *back),
            stock={m: p for m, p in sorted(stock.items()) if p or m in record.counting},
            counting=record.counting,
            speeds=follow_speeds(self.speeds, {c.member: c.speed for c in record.contributions if c.counting}),
        )
        return settled._dealt()

    def reborn(self, incarnation: int) -> Ledger:
        """The same history under a new incarnation: all members of the old one are gone, their loans come back."""
        loans = [self.held(m) for m in self.stock]
        return replace(
            self,
            incarnation=incarnation,
            digest=born(self.digest, incarnation),
            pool=union(self.pool, *loans),
            stock={},
            counting=(),
            speeds={},
        )

    def _struck(self, c: Contribution) -> tuple[Portion, ...]:
        """The stock of `c.member` without its windows, which have to be the head of it."""
        read = joined(span for window in c.windows for span in window.read)
        if split(self.held(c.member), size(read))[0] != read:
            raise LedgerError(f"{c.member} offers {read} in step {self.step}, its stock is {self.held(c.member)}")
        return without_head(self.stock.get(c.member, ()), size(read))

    def _dealt(self) -> Ledger:
        end = (
            self.frontier + self.samples * (self.terms.ahead + 1) if self.epochs is None else self.samples * self.epochs
        )
        dealt = refill(
            self.pool, self.frontier, end, self.samples, self.stock, self.counting, self.terms, self.speeds, self.deals
        )
        return replace(self, pool=dealt.pool, frontier=dealt.frontier, stock=dealt.stock, deals=dealt.deals)


def terms_after(now: Terms, record: Record) -> Terms:
    """The terms for the step after `record`: newer ones that every contribution of it accepts, else as they were."""
    accepted = {c.accepts for c in record.contributions}
    fresh = accepted.pop() if len(accepted) == 1 else None
    return fresh if fresh is not None and fresh.revision > now.revision else now


def born(digest: str, incarnation: int) -> str:
    """The digest with which a history goes on under a new incarnation."""
    return hashlib.sha256(f"{digest} incarnation {incarnation}".encode()).hexdigest()[:32]


def fresh(samples: int, epochs: int | None, terms: Terms, run: str = "") -> Ledger:
    """The ledger before the first step. `run`: fingerprint of what must be equal on all hosts (model, data, seed)."""
    text = f"{run} {samples} {epochs} {terms}"
    return Ledger(samples, epochs, terms, digest=hashlib.sha256(text.encode()).hexdigest()[:32])


@cache
def _json() -> TypeAdapter[Ledger]:
    return TypeAdapter(Ledger)


def to_json(ledger: Ledger) -> bytes:
    return _json().dump_json(ledger)


def from_json(text: bytes) -> Ledger:
    """Raises pydantic.ValidationError on anything that is not a ledger."""
    return _json().validate_json(text)
