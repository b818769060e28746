"""Every sample of an epoch once, whatever the history: windows late, members away, taken back, joining, leaving."""

import random
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainer.batching import windows
from trainer.data import ledger as ledgers
from trainer.data.committed import Contribution, Record, Terms, Window, from_json, to_json
from trainer.data.ledger import Ledger, LedgerError, fresh
from trainer.data.shares import apportion
from trainer.data.spans import size, split, union


class Reader:
    """A member with what it has summed; `behind`: it is away and still has the ledger that it left with."""

    def __init__(self, name: str) -> None:
        self.name, self.windows, self.made, self.view, self.speed = name, [], 0, None, 1.0

    @property
    def read(self) -> int:
        return sum(size(w.read) for w in self.windows)

    def sum(self, ledger: Ledger) -> None:
        spans = ledger.next_window(self.name, self.read)
        if spans:
            self.windows.append(Window(self.made, spans, float(size(spans)), ledger.step))
            self.made += 1

    def contribution(self, ledger: Ledger, **more) -> Contribution:
        claim = ledger.claim(self.name, self.read)
        return Contribution(self.name, windows=tuple(self.windows), claim=claim, speed=self.speed, **more)


def commit(ledger: Ledger, readers: list[Reader], **more) -> tuple[Ledger, Record]:
    parts = sorted((r.contribution(ledger, **more) for r in readers), key=lambda c: c.member)
    record = Record(ledger.step, 0, tuple(parts))
    for r in readers:
        r.windows = []
    return ledger.after(record), record


def run_to_the_end(ledger: Ledger, readers: list[Reader], limit: int = 2000) -> tuple[Ledger, list[Record]]:
    records = []
    while not ledger.complete:
        for r in readers:
            r.sum(ledger)
        ledger, record = commit(ledger, readers)
        records.append(record)
        assert len(records) < limit, "the run does not come to its end"
    return ledger, records


def positions(records: list[Record]) -> list[int]:
    spans = [s for record in records for c in record.contributions for w in c.windows for s in w.read]
    return [p for start, stop in spans for p in range(start, stop)]


@settings(deadline=None, max_examples=60)
@given(
    samples=st.integers(1, 200),
    epochs=st.integers(1, 3),
    batch=st.integers(1, 60),
    micro=st.integers(1, 16),
    hosts=st.integers(1, 5),
    ahead=st.integers(2, 5),
)
@example(samples=3, epochs=3, batch=2, micro=1, hosts=1, ahead=5)  # all is dealt at once, and dealt again at the tail
def test_without_faults_each_step_is_the_window_that_one_process_would_take(
    samples, epochs, batch, micro, hosts, ahead
):
    start = fresh(samples, epochs, Terms(0, batch, micro, ahead))
    _, records = run_to_the_end(start, [Reader(f"h{i}") for i in range(hosts)])
    steps = [union(*(w.read for c in r.contributions for w in c.windows)) for r in records]
    assert steps[0] == ()  # the first commit only deals
    one = [w for e in range(epochs) for w in windows(e, 0, samples, batch)]
    assert steps[1:] == [((w.epoch * samples + w.start, w.epoch * samples + w.stop),) for w in one]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_history_of_records_has_every_sample_of_every_epoch_once(seed):
    dice = random.Random(seed)
    terms = Terms(0, dice.randint(1, 40), dice.randint(1, 8), dice.randint(2, 5), elastic=dice.random() < 0.5)
    samples, epochs = dice.randint(1, 150), dice.randint(1, 3)
    ledger = start = fresh(samples, epochs, terms)
    here, away, records, lives = [Reader("h0#0"), Reader("h1#0")], [], [], 2
    for _ in range(dice.randint(5, 60)):
        for r in here:
            r.speed = dice.choice([0.0, 1.0, 5.0])
            for _ in range(dice.randint(0, 3)):
                r.sum(ledger)
        for r in away:
            for _ in range(dice.randint(0, 2)):
                r.sum(r.view)
        what = dice.random()
        if what < 0.1 and len(here) > 1:
            r = here.pop(dice.randrange(len(here)))
            r.view = ledger
            away.append(r)
        elif what < 0.2 and away:
            r = away.pop(dice.randrange(len(away)))
            if not all(ledger.owns(r.name, w.read) for w in r.windows):
                r.windows = []
            here.append(r)
        elif what < 0.3 and len(here) < 5:
            here.append(Reader(f"h{dice.randrange(6)}#{lives}"))
            lives += 1
        more = {}
        if dice.random() < 0.15:
            more["expired"] = tuple(r.name for r in away if dice.random() < 0.5)
        if dice.random() < 0.1:
            terms = replace(terms, revision=terms.revision + 1, global_batch=dice.randint(1, 40))
        ledger, record = commit(ledger, here, accepts=terms, **more)
        records.append(record)
        assert ledger == ledgers.from_json(ledgers.to_json(ledger))
        assert record == from_json(to_json(record))
    for _ in range(2):  # all who are away are given up, the rest is read
        ledger, record = commit(ledger, here, expired=tuple(r.name for r in away))
        records.append(record)
    ledger, rest = run_to_the_end(ledger, here)
    assert sorted(positions(records + rest)) == list(range(samples * epochs))
    replayed = start
    for record in records + rest:
        replayed = replayed.after(record)
    assert replayed == ledger


@settings(deadline=None, max_examples=30)
@given(hosts=st.integers(2, 5), gone=st.integers(1, 4))
def test_the_global_batch_is_kept_when_hosts_go(hosts, gone):
    gone = min(gone, hosts - 1)
    ledger, readers = fresh(100_000, 1, Terms(0, 120, 4, 3)), [Reader(f"h{i}") for i in range(hosts)]
    for step in range(20):
        for r in readers:
            r.sum(ledger)
        ledger, record = commit(ledger, readers)
        if step == 8:
            readers = readers[gone:]
        if step not in (0, 9):  # 0 only deals; 9 was read before they knew
            assert record.weight == 120


def test_a_newcomer_is_dealt_to_at_its_first_commit_and_the_batch_stays():
    ledger, readers = fresh(10_000, 1, Terms(0, 120, 4, 3)), [Reader("a"), Reader("b")]
    for step in range(12):
        if step == 5:
            readers.append(Reader("c"))
        for r in readers:
            r.sum(ledger)
        ledger, record = commit(ledger, readers)
        shares = [sum(w.weight for w in c.windows) for c in record.contributions]
        if step > 5:
            assert sum(shares) == 120
            assert shares == [40, 40, 40]


def test_a_slow_member_s_unread_chunks_go_to_the_others_at_the_tail():
    ledger, fast, slow = fresh(400, 1, Terms(0, 40, 4, 5)), Reader("fast"), Reader("slow")
    ledger, _ = commit(ledger, [fast, slow])
    slow_samples = 0
    while not ledger.complete:
        fast.sum(ledger)
        if ledger.step % 4 == 0:
            slow.sum(ledger)
        ledger, record = commit(ledger, [fast, slow])
        slow_samples += sum(w.weight for w in record.contributions[1].windows)
        assert ledger.step < 60
    assert 0 < slow_samples < 200


def test_elastic_windows_follow_measured_speed_and_keep_the_batch():
    ledger, readers = fresh(10_000, 1, Terms(0, 120, 4, 2, elastic=True)), [Reader("a"), Reader("b")]
    readers[0].speed = 3.0
    for _ in range(8):
        for r in readers:
            r.sum(ledger)
        ledger, record = commit(ledger, readers)
    shares = [sum(w.weight for w in c.windows) for c in record.contributions]
    assert shares == [92, 28]  # 30 micro-batches by 3 : 1, the odd one to the faster


@given(units=st.integers(0, 200), speeds=st.lists(st.floats(0.1, 100), min_size=1, max_size=8))
def test_shares_are_within_one_of_what_is_due_and_add_up(units, speeds):
    counts = apportion(units, speeds)
    assert sum(counts) == units
    assert all(abs(n - units * s / sum(speeds)) < 1 + 1e-9 for n, s in zip(counts, speeds, strict=True))


def test_a_loan_is_kept_until_all_who_count_say_it_is_over():
    ledger, a, b, c = fresh(1000, 1, Terms(0, 30, 1)), Reader("a"), Reader("b"), Reader("c")
    ledger, _ = commit(ledger, [a, b, c])
    loan = ledger.held("c")
    assert loan
    one = (a.contribution(ledger, expired=("c",)), b.contribution(ledger))
    assert ledger.after(Record(1, 0, one)).held("c") == loan
    both = tuple(r.contribution(ledger, expired=("c",)) for r in (a, b))
    after = ledger.after(Record(1, 0, both))
    assert after.held("c") == ()
    assert not after.owns("c", split(loan, 1)[0])


def test_the_loan_of_an_old_life_comes_back_when_the_host_has_a_new_one():
    ledger, a, old = fresh(1000, 1, Terms(0, 30, 1)), Reader("a#1"), Reader("b#1")
    ledger, _ = commit(ledger, [a, old])
    ledger, _ = commit(ledger, [a])
    assert ledger.held("b#1")
    ledger, _ = commit(ledger, [a, Reader("b#2")])
    assert not ledger.held("b#1")


def test_settings_are_in_force_only_when_all_accept_the_same():
    old, new = Terms(0, 30, 1), Terms(1, 60, 1)
    ledger, a, b = fresh(1000, 1, old), Reader("a"), Reader("b")
    ledger = ledger.after(Record(0, 0, (a.contribution(ledger, accepts=new), b.contribution(ledger))))
    assert ledger.terms == old
    ledger, _ = commit(ledger, [a, b], accepts=new)
    assert ledger.terms == new
    for r in (a, b):
        r.sum(ledger)
    assert commit(ledger, [a, b], accepts=new)[1].weight == 60


def test_a_window_that_was_committed_cannot_be_committed_again():
    ledger, a = fresh(100, 1, Terms(0, 10, 1)), Reader("a")
    ledger, _ = commit(ledger, [a])
    a.sum(ledger)
    again = list(a.windows)
    ledger, _ = commit(ledger, [a])
    a.windows = again
    with pytest.raises(LedgerError, match="a offers"):
        commit(ledger, [a])


def test_a_new_incarnation_takes_all_loans_back():
    ledger, readers = fresh(90, 1, Terms(0, 30, 1)), [Reader("a#1"), Reader("b#1")]
    ledger, _ = commit(ledger, readers)
    reborn = ledger.reborn(2)
    assert reborn.pool == ((0, ledger.frontier),)
    assert reborn.digest != ledger.digest
    _, records = run_to_the_end(reborn, [Reader("a#2")])
    assert sorted(positions(records)) == list(range(90))
