"""What must hold of all members together, checked at every commit, and what is true of the whole run at its end."""

from __future__ import annotations

from trainer.data.committed import Record, Window
from trainer.data.ledger import Ledger, LedgerError
from trainer.sync.commit.member import Member


class Violation(AssertionError):
    """A promise of the commit rule or of the ledger does not hold."""


class Truth:
    """The one history, as the first member to commit a step has it; all the others are compared with it."""

    def __init__(self, start: Ledger) -> None:
        self.ledgers = [start]
        self.records: list[Record] = []
        self.dropped: dict[str, set[int]] = {}
        self.counted: dict[str, set[int]] = {}  # of each member
        self.past = {start.digest: (start,)}  # each state that ever was, with those before it
        self.before: dict[str, tuple[Record, ...]] = {start.digest: ()}

    @property
    def step(self) -> int:
        return len(self.records)

    def declared(self, incarnation: int, state: Ledger) -> None:
        """A restart from `state`: what is beyond it is given up."""
        self.records = list(self.before[state.digest])
        self.ledgers = [*self.past[state.digest][:-1], state.reborn(incarnation)]
        self.counted = {}
        for record in self.records:
            self._count(record)
        self._remember()

    def _count(self, record: Record) -> None:
        for c in record.contributions:
            for w in c.windows:
                if w.number in self.counted.setdefault(c.member, set()):
                    raise Violation(f"window {w.number} of {c.member} is counted twice, again in step {record.step}")
                self.counted[c.member].add(w.number)

    def _remember(self) -> None:
        self.past[self.ledgers[-1].digest] = tuple(self.ledgers)
        self.before[self.ledgers[-1].digest] = tuple(self.records)

    def committed(self, member: str, record: Record) -> None:
        """A member has committed, kept or applied `record`."""
        if record.step < self.step:
            if self.records[record.step] != record:
                raise Violation(f"{member} has committed another step {record.step}")
            return
        if record.step > self.step:
            raise Violation(f"{member} has committed step {record.step}, nobody has committed {self.step}")
        self._count(record)
        try:
            self.ledgers.append(self.ledgers[-1].after(record))
        except (LedgerError, ValueError) as wrong:
            raise Violation(f"{member} has committed what the ledger refuses: {wrong}") from wrong
        self.records.append(record)
        self._remember()

    def drop(self, member: str, windows: tuple[Window, ...]) -> None:
        """A member gives up sums that were taken back from it."""
        self.dropped.setdefault(member, set()).update(w.number for w in windows)

    def check(self, m: Member) -> None:
        """The state of one member against the history."""
        if m.incarnation != self.ledgers[-1].incarnation or m.ledger is None:
            return
        at = m.ledger.step
        if at > self.step or m.ledger.digest != self.ledgers[at].digest:
            raise Violation(f"{m.me} has a state of step {at} that is not the history's")
        pending = {w.number for w in (*m.frozen, *m.current)} | ({m.reading.number} if m.reading else set())
        known = pending | self.dropped.get(m.me, set()) | self.counted.get(m.me, set())
        if len(known) < m.made and (lost := set(range(m.made)) - known):
            raise Violation(f"{m.me} has lost its windows {sorted(lost)}")

    def check_end(self) -> None:
        """Every sample of every epoch once, as the records say: the ledger is not asked."""
        spans = [s for r in self.records for c in r.contributions for w in c.windows for s in w.read]
        positions = sorted(p for start, stop in spans for p in range(start, stop))
        if positions != list(range(int(self.ledgers[0].total))):
            raise Violation("not every sample is in the surviving parameters exactly once")
