"""What a member wants done. Effects are carried out in their order; none of them waits."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.data.committed import Contribution, Record, Window
from trainer.membership.board import Members, Note
from trainer.sync.commit.events import Second


@dataclass(frozen=True)
class Accumulate:
    """Sum `window` (its weight still 0) on the parameters as they are now; then say Summed."""

    window: Window


@dataclass(frozen=True)
class Exchange:
    """Freeze the current sum, start the reduce of a copy of it. Who catches up, or has nothing, sends zeros."""

    generation: int
    step: int
    members: Members
    contribution: Contribution


@dataclass(frozen=True)
class Say:
    """Send the second message to the other members. May be repeated, may be late."""

    message: Second
    members: Members


@dataclass(frozen=True)
class Commit:
    """Apply the result that is held to the parameters: the optimizer's step of `record`. Drop the frozen sum."""

    record: Record


@dataclass(frozen=True)
class Keep:
    """Keep the result that is held, in order, until the state arrives: this member is catching up."""

    record: Record


@dataclass(frozen=True)
class Adopt:
    """Take the state that arrived, apply the kept results of `records` to it, go on from there."""

    step: int
    records: tuple[Record, ...]


@dataclass(frozen=True)
class OfferAgain:
    """These did not commit: add the frozen sum to the current one."""

    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Strike:
    """These are no longer ours to offer, committed without us or taken back: drop the frozen sum."""

    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Void:
    """The loan was taken back: drop these sums, and the window that is being accumulated."""

    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Forget:
    """Drop the results that were kept: steps are missing between them and what follows."""


@dataclass(frozen=True)
class Fetch:
    """Get the state of a step that is not before `need`, in the background; a new one replaces what is under way where
    that will not do. `have`: what we have is a state of that step, so the results from there on will do as well."""

    need: int
    have: int | None


@dataclass(frozen=True)
class WriteNote:
    """Put the note into the store; repeat until it is seen there or a higher number counts."""

    number: int
    note: Note


@dataclass(frozen=True)
class Activate:
    """Compare-and-put the number of the active generation."""

    number: int
    seen: int


@dataclass(frozen=True)
class Left:
    """The step in which this member handed everything back is committed: it can stop."""

    step: int


Effect = (
    Accumulate
    | Exchange
    | Say
    | Commit
    | Keep
    | Adopt
    | OfferAgain
    | Strike
    | Void
    | Forget
    | Fetch
    | WriteNote
    | Activate
    | Left
)
