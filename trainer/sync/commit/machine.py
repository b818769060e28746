"""The commit rule's state machine: `advance(member, event) -> (member, effects)`. No clock, no I/O, no randomness.

barrier   only who has heard from all members of the generation that they hold the result commits    passed
hold      who breaks off in between keeps the result and does nothing with it                        break_off
again     nobody comes back into a generation that it has left                                       break_off, join
notes     a proposal becomes active only while all of its notes saw the active generation            generation.py
overlap   and only with a member of that generation which has the state                              generation.py
execute   the outcome is carried out before the next note is written                                 joining.py
record    what a committed record names is not offered again                                         fate.py
amnesia   a process that has lost its memory is a member under a new name                            newborn
"""

from __future__ import annotations

from dataclasses import replace

from trainer.data.committed import Record, Window
from trainer.data.ledger import Ledger
from trainer.data.spans import size
from trainer.sync.commit.effects import Accumulate, Effect, Exchange, Fetch, Left, Say, WriteNote
from trainer.sync.commit.events import (
    Accepts,
    BoardSeen,
    BreakOff,
    Event,
    Expired,
    Leave,
    Offer,
    Reduced,
    Remind,
    Second,
    StateArrived,
    Summed,
    Take,
)
from trainer.sync.commit.fate import Turn, adopt, commit
from trainer.sync.commit.joining import follow, join
from trainer.sync.commit.member import Member, Phase


def newborn(host: str, life: str, ledger: Ledger | None) -> Member:
    """A process that starts, with what its best checkpoint holds or nothing.

    Rule `amnesia`: `life` has never been used before on this host, so nothing that an earlier process said binds it.
    """
    if ledger is None:
        return Member(f"{host}#{life}", None)
    return Member(f"{host}#{life}", ledger, incarnation=ledger.incarnation, step=ledger.step, digest=ledger.digest)


def advance(m: Member, event: Event) -> Turn:
    """What `event` does to `m`, and what is to be done because of it. The order of the effects matters."""
    m, effects = _handle(m, event)
    m, passing = pass_barrier(m)
    m, joining = join(m)
    m, offering = offer_nothing(m)
    return m, (*effects, *passing, *joining, *offering)


def _handle(m: Member, event: Event) -> Turn:
    match event:
        case Take():
            return take(m)
        case Summed():
            return summed(m, event)
        case Offer():
            return offer(m, event)
        case Reduced():
            return hold(m, event)
        case Second():
            return hear(m, event)
        case BoardSeen():
            return follow(replace(m, board=event.board)) if event.board.revision > m.board.revision else (m, ())
        case BreakOff():
            return break_off(m)
        case Remind():
            return m, remind(m)
        case StateArrived():
            return receive(m, event.ledger)
        case Accepts():
            return replace(m, accepts=event.terms), ()
        case Expired():
            return replace(m, expired=event.members), ()
        case Leave():
            return replace(m, leaving=True), ()


def take(m: Member) -> Turn:
    """The next window of what is allotted: one at a time, on the parameters of now."""
    spans = m.work()
    if m.ledger is None or not spans:
        return m, ()
    window = Window(m.made, spans, 0.0, m.ledger.step)
    return replace(m, reading=window, made=m.made + 1), (Accumulate(window),)


def summed(m: Member, event: Summed) -> Turn:
    """A window that was voided meanwhile is not added."""
    if m.reading is None or m.reading.number != event.number:
        return m, ()
    return replace(m, reading=None, current=(*m.current, replace(m.reading, weight=event.weight))), ()


def offer(m: Member, how: Offer) -> Turn:
    """Put what is summed on offer. From here on its fate is open, and reading is bound to what was claimed."""
    if m.phase != Phase.SUM:
        return m, ()
    header = m.contribution(how)
    if header.counting:
        claimed = sum(size(w.read) for w in header.windows)
        bound = None if header.claim is None else claimed + header.claim
        m = replace(m, frozen=m.current, current=(), bound=bound)
    return replace(m, phase=Phase.REDUCE), (Exchange(m.generation, m.step, m.board.members, header),)


def offer_nothing(m: Member) -> Turn:
    """Who catches up takes part at once, without sums: it is not to be waited for."""
    return offer(m, Offer()) if m.phase == Phase.SUM and not m.full else (m, ())


def hold(m: Member, event: Reduced) -> Turn:
    """Rule `barrier`: the result is held, and said to be held."""
    if m.phase != Phase.REDUCE or (event.generation, event.step) != (m.generation, m.step):
        return m, ()
    record = Record(event.step, event.generation, event.contributions)
    return replace(m, phase=Phase.SECOND, result=record), (_say(m),)


def hear(m: Member, said: Second) -> Turn:
    """Messages of a generation that this member has not seen begin are kept, older ones are not."""
    if said.generation < m.generation:
        return m, ()
    fresh = frozenset(s for s in m.heard if s.generation > m.generation or s.step >= m.step)
    return replace(m, heard=fresh | {said}), ()


def passed(m: Member) -> bool:
    """Rule `barrier`: all members of the generation hold the result of this step."""
    held = {s.member for s in m.heard if (s.generation, s.step) == (m.generation, m.step)}
    return m.phase == Phase.SECOND and m.board.members <= held | {m.me}


def pass_barrier(m: Member) -> Turn:
    """Commit what all hold."""
    if m.result is None or not passed(m):
        return m, ()
    mine = next(c for c in m.result.contributions if c.member == m.me)
    step = m.step
    m, effects = commit(replace(m, phase=Phase.SUM), m.result)
    return (m.out(), (*effects, Left(step))) if mine.leaving else (m, effects)


def break_off(m: Member) -> Turn:
    """Rules `hold` and `again`: what is held is kept, nothing is done with it; the way back is the next number."""
    return (m.out() if m.inside else m), ()


def receive(m: Member, ledger: Ledger) -> Turn:
    """A state of another incarnation, or an older one than is here, is of no use."""
    here = max((x.step for x in (m.ledger, m.arrived) if x is not None), default=-1)
    return adopt(replace(m, arrived=ledger)) if ledger.incarnation == m.incarnation and ledger.step > here else (m, ())


def remind(m: Member) -> tuple[Effect, ...]:
    """What may have been lost on its way: the note, the second message, the request for a state."""
    effects: list[Effect] = []
    if m.phase == Phase.JOIN and m.me not in m.board.notes_of(m.generation) and m.generation > m.board.active:
        effects.append(WriteNote(m.generation, m.note()))
    if m.phase == Phase.SECOND:
        effects.append(_say(m))
    if m.inside and not m.full:
        effects.append(Fetch(m.kept_from, m.ledger.step if m.ledger else None))
    return tuple(effects)


def _say(m: Member) -> Say:
    return Say(Second(m.generation, m.step, m.me), m.board.members - {m.me})
