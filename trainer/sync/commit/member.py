"""The state of one member in the commit rule. Frozen: each event gives a new one (machine.py)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from trainer.data.committed import Contribution, Record, Terms, Window, chain
from trainer.data.ledger import Ledger
from trainer.data.spans import Spans, size, split
from trainer.membership.board import Board, Held, Note
from trainer.sync.commit.events import Offer, Second


class Phase(StrEnum):
    OUT = "out"  # broken off, or not yet in any generation
    JOIN = "join"  # note written, waiting for the proposal to become active
    SUM = "sum"  # in the active generation, nothing on offer
    REDUCE = "reduce"  # sums are on offer
    SECOND = "second"  # holds the result, waiting to hear that all others do


@dataclass(frozen=True)
class Member:
    """`ledger` belongs to the parameters that this member has; `step` and `digest` to the history that it knows of. The
    two are one (`full`) but while it catches up: then `kept` are the records of the results that it keeps."""

    me: str
    ledger: Ledger | None
    board: Board = field(default_factory=Board)
    phase: Phase = Phase.OUT
    generation: int = -1  # that it last joined
    executed: int = -1  # newest generation whose outcome it has carried out
    incarnation: int = 0
    step: int = -1
    digest: str = ""
    kept: tuple[Record, ...] = ()
    arrived: Ledger | None = None  # fetched, and ahead of what it knows
    frozen: tuple[Window, ...] = ()  # on offer, or their fate is open
    current: tuple[Window, ...] = ()
    reading: Window | None = None  # being accumulated, its weight not yet known
    bound: int | None = None  # samples of its stock that it may read while a header of its is out; None: all
    result: Record | None = None  # of a reduce, held uncommitted
    heard: frozenset[Second] = frozenset()
    made: int = 0  # windows numbered so far
    accepts: Terms | None = None
    expired: frozenset[str] = frozenset()
    leaving: bool = False

    @property
    def full(self) -> bool:
        """Has the state of the newest step that it knows of."""
        return self.ledger is not None and (self.ledger.step, self.ledger.digest) == (self.step, self.digest)

    @property
    def kept_from(self) -> int:
        """The first step whose result it keeps."""
        return self.step - len(self.kept)

    @property
    def read(self) -> int:
        """Samples of its stock that are summed, or being summed, and not known to be committed."""
        reading = (self.reading,) if self.reading else ()
        return sum(size(w.read) for w in (*self.frozen, *self.current, *reading))

    @property
    def staleness(self) -> int:
        """Commits between the oldest parameters that its sums were made on and those of now."""
        return max((self.step - w.base for w in self.current), default=0)

    @property
    def inside(self) -> bool:
        return self.phase in (Phase.SUM, Phase.REDUCE, Phase.SECOND)

    def work(self) -> Spans:
        """The samples of the next window. Empty: there is nothing that it may read before it hears more.

        Also while it is away: then this is local mode, up to what was allotted before it left.
        """
        if self.ledger is None or self.reading is not None:
            return ()
        spans = self.ledger.next_window(self.me, self.read)
        return spans if self.bound is None else split(spans, max(0, self.bound - self.read))[0]

    def note(self) -> Note:
        """What it can say about the generation that is active."""
        held = None
        if self.result is not None and self.result.generation == self.board.active:
            held = Held(self.result.generation, self.result.step, chain(self.digest, self.result))
        return Note(self.me, self.board.active, self.step, self.digest, self.full, held)

    def contribution(self, how: Offer) -> Contribution:
        """The header of what it offers now: all that it has summed. While it catches up, nothing, and not counting."""
        header = Contribution(
            self.me,
            counting=False,
            claim=0,
            accepts=self.accepts,
            expired=tuple(sorted(self.expired)),
            leaving=self.leaving,
        )
        if self.ledger is None or not self.full:
            return header
        return replace(
            header,
            counting=True,
            windows=self.current,
            claim=self._claim(self.ledger),
            discount=how.discount,
            found_inf=how.found_inf,
            lr=how.lr,
            speed=how.speed,
        )

    def _claim(self, ledger: Ledger) -> int | None:
        reading = size(self.reading.read) if self.reading else 0
        claim = 0 if self.leaving else ledger.claim(self.me, self.read - reading)
        return None if claim is None else max(claim, reading)

    def out(self) -> Member:
        return replace(self, phase=Phase.OUT)
