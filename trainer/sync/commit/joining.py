"""Into a new generation: the note, the outcome of the last, a new incarnation. Rules `again`, `notes`, `execute`."""

from __future__ import annotations

from dataclasses import replace

from trainer.membership.board import start_of
from trainer.membership.generation import conclude, may_activate
from trainer.sync.commit.effects import Activate, Effect, Fetch, Forget, Void, WriteNote
from trainer.sync.commit.fate import Turn, commit, resolve
from trainer.sync.commit.member import Member, Phase


def may_join(m: Member) -> bool:
    """Rule `execute`: a member of the active generation carries its outcome out before it writes its next note."""
    return m.executed == m.board.active or m.me not in m.board.members


def should_leave(m: Member) -> bool:
    """Whether to leave the generation for a newer proposal now. Only economy: any moment would be safe.

    Not while a step can still complete: who has left with a note took with it what the others wait for, unless it held
    that step's result.
    """
    if m.phase in (Phase.OUT, Phase.JOIN, Phase.SUM):
        return True
    gone = [n for notes in m.board.notes.values() for n in notes.values() if n.member in m.board.members]
    if m.phase == Phase.SECOND:
        return any(n.member != m.me for n in gone)
    return any(n.step == m.step and n.held is None for n in gone if n.member != m.me)


def join(m: Member) -> Turn:
    """Write the note for the newest proposal, if it has this member and it may; activate what can become active."""
    number, effects = m.board.newest, list[Effect]()
    wanted = number > max(m.board.active, m.generation) and m.me in m.board.proposals[number]
    if wanted and may_join(m) and should_leave(m):
        effects.append(WriteNote(number, m.note()))
        m = replace(m, phase=Phase.JOIN, generation=number)
    effects += [Activate(n, m.board.active) for n in m.board.proposals if may_activate(m.board, n)]
    return m, tuple(effects)


def follow(m: Member) -> Turn:
    """What a new board means: another incarnation, the end of our generation, the beginning of the next."""
    effects: tuple[Effect, ...] = ()
    if m.board.incarnation.number > m.incarnation:
        m, effects = begin_anew(m)
    if m.inside and m.generation != m.board.active:
        m = m.out()
    if m.me in m.board.members and m.executed < m.board.active and not m.inside:
        m, more = execute(m)
        effects += more
    return m, effects


def execute(m: Member) -> Turn:
    """Rule `execute`: carry out how the last generation ended. Who cannot by itself is behind and catches up."""
    outcome, result = conclude(m.board), m.result
    effects: tuple[Effect, ...] = ()
    held = m.board.notes_of(m.board.active)[m.me].held is not None
    if result is not None and held and result.step < outcome.end[0]:
        m, effects = commit(m, result)
    m = replace(m, result=None, executed=m.board.active)
    if (m.step, m.digest) != outcome.end:
        effects += (Forget(),) if m.kept else ()
        m = replace(m, step=outcome.end[0], digest=outcome.end[1], kept=())
    m = replace(m, phase=Phase.SUM if m.phase == Phase.JOIN and m.generation == m.board.active else Phase.OUT)
    if m.full:
        m, more = resolve(m)
        return m, effects + more
    return m, (*effects, Fetch(m.kept_from, m.ledger.step if m.ledger else None))


def begin_anew(m: Member) -> Turn:
    """A new incarnation: what this member has beyond the declared step is given up, its sums are void."""
    incarnation, ledger = m.board.incarnation, m.ledger
    step, digest = start_of(incarnation)
    level = ledger is not None and (ledger.step, ledger.digest) == (incarnation.step, incarnation.digest)
    pending = (*m.frozen, *m.current, *((m.reading,) if m.reading else ()))
    anew = Member(
        m.me,
        ledger.reborn(incarnation.number) if ledger is not None and level else None,
        board=m.board,
        generation=m.generation,
        incarnation=incarnation.number,
        step=step,
        digest=digest,
        made=m.made,
        accepts=m.accepts,
        leaving=m.leaving,
    )
    return anew, ((Void(pending),) if pending else ()) + ((Forget(),) if m.kept else ())
