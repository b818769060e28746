"""What becomes of a member's sums and state: committed, offered again, void; behind, and level again."""

from __future__ import annotations

from dataclasses import replace

from trainer.data.committed import Record, Window, chain
from trainer.data.ledger import Ledger, LedgerError
from trainer.sync.commit.effects import Adopt, Commit, Effect, Fetch, Keep, OfferAgain, Strike, Void
from trainer.sync.commit.member import Member, Phase

Turn = tuple[Member, tuple[Effect, ...]]


def still_ours(ledger: Ledger, me: str, windows: tuple[Window, ...]) -> bool:
    """Rule `record`: whether `windows` are still to be offered. A record that names them took them from the stock."""
    ours = {ledger.owns(me, w.read) for w in windows}
    if len(ours) > 1:
        raise LedgerError(f"{me} has a sum of which only a part is its own: {windows}")
    return ours != {False}


def resolve(m: Member) -> Turn:
    """Settle what is frozen, and current, once its fate is known: the ledger is past its step, or that was given up."""
    assert m.ledger is not None
    effects: list[Effect] = []
    frozen, current, reading = m.frozen, m.current, m.reading
    if frozen and not still_ours(m.ledger, m.me, frozen):
        effects.append(Strike(frozen))
        frozen = ()
    unsettled = (*current, reading) if reading else current
    if unsettled and not still_ours(m.ledger, m.me, unsettled):
        effects.append(Void(unsettled))
        current, reading = (), None
    if frozen:
        effects.append(OfferAgain(frozen))
    return replace(m, frozen=(), current=frozen + current, reading=reading, bound=None), tuple(effects)


def commit(m: Member, record: Record) -> Turn:
    """`record` is everybody's. Who has the state applies it; who catches up keeps the result."""
    if m.full:
        assert m.ledger is not None
        ledger = m.ledger.after(record)
        m, effects = resolve(replace(m, ledger=ledger, step=m.step + 1, digest=ledger.digest, result=None))
        return m, (Commit(record), *(e for e in effects if not isinstance(e, Strike)))  # Commit drops the frozen sum
    known = replace(m, step=m.step + 1, digest=chain(m.digest, record), kept=(*m.kept, record), result=None)
    m, effects = adopt(known)
    return m, (Keep(record), *effects)


def adopt(m: Member) -> Turn:
    """Take the state that has arrived, if it meets the kept results; ask for a newer one if it does not."""
    if m.arrived is None or m.full:
        return replace(m, arrived=None), ()
    if m.arrived.step > m.step:
        return _jump(m, m.arrived) if m.phase == Phase.OUT else (m, ())
    ledger = m.arrived
    records = m.kept[ledger.step - m.kept_from :] if ledger.step >= m.kept_from else ()
    for record in records:
        ledger = ledger.after(record)
    m, effects = resolve(replace(m, ledger=ledger, arrived=None))
    if m.full:
        return replace(m, kept=()), (Adopt(ledger.step, records), *effects)
    return m, (Adopt(ledger.step, records), *effects, Fetch(m.kept_from, ledger.step))


def _jump(m: Member, ledger: Ledger) -> Turn:
    """Outside any generation a newer state is simply where the member now stands."""
    held = m.result if m.result is not None and m.result.step >= ledger.step else None
    there = replace(m, ledger=ledger, arrived=None, step=ledger.step, digest=ledger.digest, kept=(), result=held)
    there, effects = resolve(there)
    return there, (Adopt(ledger.step, ()), *effects)
