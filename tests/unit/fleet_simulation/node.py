"""One simulated host: the member, and the edge around it that carries its effects out, badly at times."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.unit.fleet_simulation.truth import Truth, Violation
from trainer.data.committed import Contribution, Record, Window
from trainer.data.ledger import Ledger
from trainer.data.spans import size
from trainer.membership import board as store
from trainer.membership.board import Board
from trainer.sync.commit import machine
from trainer.sync.commit.effects import (
    Accumulate,
    Activate,
    Adopt,
    Commit,
    Effect,
    Exchange,
    Fetch,
    Keep,
    Left,
    Say,
    Strike,
    Void,
    WriteNote,
)
from trainer.sync.commit.events import Event, Reduced, Second, StateArrived, Summed
from trainer.sync.commit.member import Member


@dataclass(frozen=True)
class Part:
    """A member's sums and header on their way to another, for one step of one generation."""

    generation: int
    step: int
    contribution: Contribution


Write = Callable[[Board], Board]
Post = Callable[[str, str, Part | Second], None]  # from, to, what


@dataclass
class Node:
    """`post` sends to another member, `write` sends a transaction to the store; both may come late or never."""

    member: Member
    truth: Truth
    post: Post
    write: Callable[[str, Write], None]
    checkpoint: Ledger | None = None
    window: Window | None = None
    exchange: Exchange | None = None
    fetch: Fetch | None = None
    fetching: Ledger | None = None
    left: bool = False
    events: deque[Event] = field(default_factory=deque)
    parts: dict[tuple[int, int], dict[str, Contribution]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.member.me

    def happens(self, event: Event) -> None:
        self.events.append(event)
        if len(self.events) > 1:
            return  # an effect brought it about: after the others of that turn
        turns = 0
        while self.events:
            if (turns := turns + 1) > 100:
                raise Violation(f"{self.name} spins")
            self.member, effects = machine.advance(self.member, self.events[0])
            for effect in effects:
                self._do(effect)
            self.truth.check(self.member)
            self.events.popleft()
        self._load()

    def _load(self) -> None:
        """From disk, where the declared incarnation begins with what lies there."""
        m, disk = self.member, self.checkpoint
        inc = m.board.incarnation
        if disk is not None and m.ledger is None and (disk.step, disk.digest) == (inc.step, inc.digest):
            self.happens(StateArrived(disk.reborn(inc.number)))

    def finish_window(self) -> None:
        if self.window is not None:
            window, self.window = self.window, None
            self.happens(Summed(window.number, float(size(window.read))))

    def receives(self, what: Part | Second) -> None:
        if isinstance(what, Second):
            return self.happens(what)
        self.parts.setdefault((what.generation, what.step), {})[what.contribution.member] = what.contribution
        return self._reduce()

    def _reduce(self) -> None:
        """The transport: sums are there when the parts of all are, if this member takes part."""
        ours = self.exchange
        if ours is None:
            return
        parts = self.parts.get((ours.generation, ours.step), {})
        if parts.keys() >= ours.members:
            self.exchange = None
            self.happens(Reduced(ours.generation, ours.step, tuple(parts[m] for m in sorted(ours.members))))

    def _do(self, effect: Effect) -> None:
        match effect:
            case Accumulate(window):
                self.window = window
            case Exchange():
                self._begin(effect)
            case Say(message, members):
                for m in sorted(members):
                    self.post(self.name, m, message)
            case Commit(record) | Keep(record):
                self._committed(record)
            case Adopt(records=records):
                self.fetch = self.fetching = None
                for record in records:
                    self._committed(record)
            case Strike(windows) | Void(windows):
                counted = self.truth.counted.get(self.name, set())
                self.truth.drop(self.name, tuple(w for w in windows if w.number not in counted))
                if self.window in windows:
                    self.window = None
            case Fetch():
                self.fetch = effect
            case WriteNote(number, note):
                self.write(self.name, lambda b: store.noted(b, number, note))
            case Activate(number, seen):
                self.write(self.name, lambda b: store.activated(b, number, seen))
            case Left():
                self.left = True

    def _committed(self, record: Record) -> None:
        """What a member of an older incarnation does is given up: it has not heard of the restart."""
        if self.member.incarnation == self.truth.ledgers[-1].incarnation:
            self.truth.committed(self.name, record)

    def _begin(self, exchange: Exchange) -> None:
        self.exchange = exchange
        part = Part(exchange.generation, exchange.step, exchange.contribution)
        for m in sorted(exchange.members - {self.name}):
            self.post(self.name, m, part)
        self.parts.setdefault((part.generation, part.step), {})[self.name] = exchange.contribution
        self._reduce()
