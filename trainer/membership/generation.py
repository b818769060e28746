"""When a proposal may become active, and what its members start from. Rules `notes`, `overlap`, half of `execute`."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.membership.board import Board, Held, Note, start_of


@dataclass(frozen=True)
class Outcome:
    """What a generation begins with: the history of `step` records and, where `commit` is set, that result on top."""

    step: int
    digest: str
    commit: Held | None

    @property
    def end(self) -> tuple[int, str]:
        """Step and digest after it has been carried out."""
        return (self.step + 1, self.commit.digest) if self.commit else (self.step, self.digest)


def speaks_for_last(board: Board, number: int) -> tuple[Note, ...]:
    """The notes for proposal `number` of those who know how the generation that they saw ended.

    After a new incarnation that generation has no members; then it is whoever has the declared state.
    """
    notes = tuple(board.notes_of(number).values())
    if not notes:
        return ()
    seen = notes[0].seen
    if seen == board.incarnation.generation:
        return tuple(n for n in notes if n.full and (n.step, n.digest) == start_of(board.incarnation))
    return tuple(n for n in notes if n.member in board.proposals.get(seen, ()))


def all_saw_the_active(board: Board, number: int) -> bool:
    """Rule `notes`: one note of each, and all of them written under the generation that is active now."""
    notes = board.notes_of(number)
    return notes.keys() == board.proposals[number] and all(n.seen == board.active for n in notes.values())


def overlaps(board: Board, number: int) -> bool:
    """Rule `overlap`: at least one member of the active generation, and one that has the state (docs/adr/0062)."""
    return any(n.full for n in speaks_for_last(board, number))


def may_activate(board: Board, number: int) -> bool:
    """Whether proposal `number` can become active. Notes never change, so an old view that says yes is right; the
    compare-and-put refuses where another one has become active meanwhile."""
    return number > board.active and all_saw_the_active(board, number) and overlaps(board, number)


def conclude(board: Board) -> Outcome:
    """How the generation before the active one ended, by the notes of those who were in it.

    The longest history is the base. A result held on top of it is committed if all of them hold it: then somebody may
    have committed it. Who is behind holds the last step of the base itself, for without its word nobody had committed
    that (rule `barrier`).
    """
    if board.active == board.incarnation.generation:
        return Outcome(*start_of(board.incarnation), None)
    notes = speaks_for_last(board, board.active) or tuple(board.notes_of(board.active).values())
    base = max(notes, key=lambda n: n.step)
    held = {n.held for n in notes if n.step == base.step}
    commit = held.pop() if len(held) == 1 and all(n.step == base.step for n in notes) else None
    if commit is not None and commit.step != base.step:
        commit = None
    return Outcome(base.step, base.digest, commit)
