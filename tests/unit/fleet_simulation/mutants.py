"""The rules of the commit, each left out once: a mutant replaces one function of the real machine, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from trainer.data.ledger import Ledger
from trainer.data.spans import Spans
from trainer.membership import generation
from trainer.membership.board import Board
from trainer.sync.commit import fate, joining, machine
from trainer.sync.commit.events import Reduced
from trainer.sync.commit.fate import Turn
from trainer.sync.commit.member import Member, Phase


@dataclass(frozen=True)
class Mutant:
    """`where.name` is replaced by `broken`. `seed`: a schedule that is known to show what goes wrong then."""

    rule: str
    where: Any
    name: str
    broken: Callable[..., Any]
    seed: int
    also: tuple[tuple[Any, str, Callable[..., Any]], ...] = ()


@contextmanager
def put_in(mutant: Mutant) -> Iterator[None]:
    """The machine with this rule broken, until the scope is left."""
    changes = ((mutant.where, mutant.name, mutant.broken), *mutant.also)
    with ExitStack() as undo:
        for where, name, broken in changes:
            undo.callback(setattr, where, name, getattr(where, name))
            setattr(where, name, broken)
        yield


_hold, _break_off, _follow, _newborn = machine.hold, machine.break_off, joining.follow, machine.newborn


def commits_at_once(m: Member, event: Reduced) -> Turn:
    m, said = _hold(m, event)
    if m.result is None or not said:
        return m, said
    m, effects = fate.commit(replace(m, phase=Phase.SUM), m.result)
    return m, said + effects


def commits_what_it_holds(m: Member) -> Turn:
    m, effects = _break_off(m)
    if m.result is None or m.result.step != m.step:
        return m, effects
    return fate.commit(m, m.result)


def comes_back(m: Member) -> Turn:
    if not m.inside:
        return m, ()
    return replace(m, phase=Phase.SUM, result=None, frozen=(), current=m.frozen + m.current), ()


def notes_of_any_time(board: Board, number: int) -> bool:
    return board.notes_of(number).keys() == board.proposals[number]


def overlap_without_state(board: Board, number: int) -> bool:
    return bool(generation.speaks_for_last(board, number))


def joins_before_it_executes(m: Member) -> Turn:
    newer = m.board.newest > max(m.board.active, m.generation) and m.me in m.board.proposals[m.board.newest]
    waits = m.phase == Phase.JOIN and m.generation > m.board.active
    return (m, ()) if (newer or waits) and m.board.incarnation.number == m.incarnation else _follow(m)


def at_any_time(m: Member) -> bool:
    return True


def same_name_again(host: str, life: str, ledger: Ledger | None) -> Member:
    return _newborn(host, "0", ledger)


def reads_beyond_its_claim(m: Member) -> Spans:
    return m.ledger.next_window(m.me, m.read) if m.ledger and m.reading is None else ()


MUTANTS = (
    Mutant("barrier", machine, "hold", commits_at_once, 0),
    Mutant("hold", machine, "break_off", commits_what_it_holds, 1),
    Mutant("again", machine, "break_off", comes_back, 13),
    Mutant("notes", generation, "all_saw_the_active", notes_of_any_time, 24),
    Mutant("overlap", generation, "overlaps", lambda board, number: True, 2),
    Mutant("overlap with the state", generation, "overlaps", overlap_without_state, 16),
    Mutant("execute", machine, "follow", joins_before_it_executes, 37, ((joining, "may_join", at_any_time),)),
    Mutant("record", fate, "still_ours", lambda ledger, me, windows: True, 0),
    Mutant("amnesia", machine, "newborn", same_name_again, 125),
    Mutant("claim", Member, "work", reads_beyond_its_claim, 28),
)
