"""What the agreed store holds, and under which conditions it changes: a few small writes a generation, none a step.

Each function here is one transaction of the store: it returns the board with the change, or the board as it was where
the condition does not hold. Writers learn the outcome as everybody does, by watching (docs/adr/0062).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainer.data.committed import Terms
from trainer.data.ledger import born

Members = frozenset[str]


@dataclass(frozen=True)
class Held:
    """The result of a reduce that a member holds uncommitted. `digest`: of the history with it on top."""

    generation: int
    step: int
    digest: str


@dataclass(frozen=True)
class Note:
    """What a member writes to join a proposal, after it has left its generation. Never changed afterwards."""

    member: str
    seen: int  # the active generation
    step: int  # committed steps that it knows
    digest: str
    full: bool  # has the state of that step; not so while it is catching up
    held: Held | None = None


@dataclass(frozen=True)
class Announcement:
    """The best state that a host can start from; step -1: none. Written by a process that is in no generation."""

    host: str
    step: int
    digest: str
    incarnation: int = 0  # of that state


@dataclass(frozen=True)
class Incarnation:
    """A declared start: all begin from `step`. `generation` is a number without members, active at first."""

    number: int
    step: int
    digest: str  # of the history that is taken up; its own is `born` from it
    generation: int


@dataclass(frozen=True)
class Board:
    """The store at `revision`. Generation 0 has no members: nothing runs until an incarnation is declared."""

    revision: int = 0
    active: int = 0
    incarnation: Incarnation = Incarnation(0, -1, "", 0)
    proposals: Mapping[int, Members] = field(default_factory=lambda: {0: frozenset()})
    notes: Mapping[int, Mapping[str, Note]] = field(default_factory=dict)
    announced: Mapping[str, Announcement] = field(default_factory=dict)
    desired: Terms | None = None

    @property
    def newest(self) -> int:
        """The highest number given, to a proposal or to an incarnation."""
        return max(self.proposals)

    @property
    def members(self) -> Members:
        """Of the active generation."""
        return self.proposals[self.active]

    def notes_of(self, number: int) -> Mapping[str, Note]:
        return self.notes.get(number, {})


def proposed(board: Board, number: int, members: Members) -> Board:
    """Condition: `number` is the next one."""
    if number != board.newest + 1 or not members:
        return board
    return replace(board, revision=board.revision + 1, proposals={**board.proposals, number: members})


def noted(board: Board, number: int, note: Note) -> Board:
    """Condition: the proposal is still to become active, and this member has no note there."""
    notes = board.notes_of(number)
    if number <= board.active or note.member not in board.proposals.get(number, ()) or note.member in notes:
        return board
    return replace(board, revision=board.revision + 1, notes={**board.notes, number: {**notes, note.member: note}})


def activated(board: Board, number: int, seen: int) -> Board:
    """Condition: `seen` is still the active generation (compare-and-put). What is older than both is cleared away."""
    if board.active != seen or number <= seen:
        return board
    return replace(
        board,
        revision=board.revision + 1,
        active=number,
        proposals={n: m for n, m in board.proposals.items() if n >= seen},
        notes={n: m for n, m in board.notes.items() if n >= number},
        announced={},
    )


def announced(board: Board, announcement: Announcement) -> Board:
    """No condition: the last word of a host counts."""
    return replace(board, revision=board.revision + 1, announced={**board.announced, announcement.host: announcement})


def declared(board: Board, number: int, step: int, digest: str, seen: int) -> Board:
    """Condition: nobody has declared this incarnation, and `seen` is still the active generation."""
    if number != board.incarnation.number + 1 or board.active != seen:
        return board
    generation = board.newest + 1
    return replace(
        board,
        revision=board.revision + 1,
        active=generation,
        incarnation=Incarnation(number, step, digest, generation),
        proposals={generation: frozenset()},
        notes={},
        announced={},
    )


def wished(board: Board, terms: Terms) -> Board:
    """The operator's desired settings. Condition: a higher revision."""
    if board.desired is not None and terms.revision <= board.desired.revision:
        return board
    return replace(board, revision=board.revision + 1, desired=terms)


def start_of(incarnation: Incarnation) -> tuple[int, str]:
    """Step and digest with which the first generation of `incarnation` begins."""
    return incarnation.step, born(incarnation.digest, incarnation.number)
