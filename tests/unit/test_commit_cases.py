"""The commit rule in cases small enough to follow by hand, and the store's conditions."""

from collections import deque

import pytest

from trainer.data.committed import Terms
from trainer.data.ledger import fresh
from trainer.membership import board as store
from trainer.membership.board import Board, Note
from trainer.membership.generation import conclude, may_activate
from trainer.sync.commit import machine
from trainer.sync.commit.effects import (
    Activate,
    Commit,
    Effect,
    Exchange,
    Fetch,
    Forget,
    Keep,
    Left,
    OfferAgain,
    Say,
    Void,
    WriteNote,
)
from trainer.sync.commit.events import (
    Accepts,
    BoardSeen,
    BreakOff,
    Event,
    Leave,
    Offer,
    Reduced,
    Remind,
    Second,
    StateArrived,
    Summed,
    Take,
)
from trainer.sync.commit.member import Member, Phase

START = fresh(60, 1, Terms(0, 6, 1, 3))


class Table:
    """Members around a table: the store is at once, messages go where the test says."""

    def __init__(self, *hosts: str) -> None:
        self.board = store.declared(Board(), 1, 0, START.digest, 0)
        self.members = {m.me: m for m in (machine.newborn(h, "1", START) for h in hosts)}
        self.effects: dict[str, list[Effect]] = {m: [] for m in self.members}
        self.together(*self.members)

    def happens(self, me: str, event: Event) -> list[Effect]:
        queue, begun = deque([event]), len(self.effects[me])
        while queue:
            self.members[me], effects = machine.advance(self.members[me], queue.popleft())
            self.effects[me] += effects
            for effect in effects:
                if isinstance(effect, WriteNote):
                    self.board = store.noted(self.board, effect.number, effect.note)
                if isinstance(effect, Activate):
                    self.board = store.activated(self.board, effect.number, effect.seen)
        return self.effects[me][begun:]

    def together(self, *some: str) -> None:
        """A generation of `some`, as soon as they look at the store."""
        self.board = store.proposed(self.board, self.board.newest + 1, frozenset(some))
        for _ in range(3):
            for m in self.members:
                self.happens(m, BoardSeen(self.board))

    def reduce(self, *receivers: str) -> None:
        """All offer, `receivers` get the sums."""
        parts = {m: self._offered(m) for m in sorted(self.board.members)}
        for m in receivers:
            at = self.members[m]
            self.happens(m, Reduced(at.generation, at.step, tuple(parts.values())))

    def _offered(self, m: str):
        if self.members[m].phase == Phase.SUM:
            self.happens(m, Offer())
        return [e for e in self.effects[m] if isinstance(e, Exchange)][-1].contribution

    def second(self, sender: str, *receivers: str) -> None:
        said = [e for e in self.effects[sender] if isinstance(e, Say)][-1].message
        for m in receivers:
            self.happens(m, said)

    def step(self) -> None:
        self.reduce(*sorted(self.board.members))
        for m in self.board.members:
            self.second(m, *(self.board.members - {m}))

    def sums(self, *some: str) -> None:
        for m in some:
            window = self.happens(m, Take())[0].window
            self.happens(m, Summed(window.number, 1.0))

    def did(self, me: str, kind: type) -> list[Effect]:
        return [e for e in self.effects[me] if isinstance(e, kind)]


def test_two_members_commit_the_same_record_after_both_have_said_that_they_hold_it():
    t = Table("a", "b")
    t.step()
    t.sums("a#1", "b#1")
    t.reduce("a#1", "b#1")
    assert not t.did("a#1", Commit)[1:]
    t.second("b#1", "a#1")
    assert t.members["a#1"].step == 2
    t.second("a#1", "b#1")
    assert t.did("a#1", Commit) == t.did("b#1", Commit)
    assert t.members["a#1"].ledger == t.members["b#1"].ledger


def test_a_result_that_one_has_committed_and_the_other_only_holds_is_committed_by_the_notes():
    t = Table("a", "b")
    t.step()
    t.sums("a#1", "b#1")
    t.reduce("a#1", "b#1")
    t.second("b#1", "a#1")
    for m in t.members:
        t.happens(m, BreakOff())
    assert (t.members["a#1"].step, t.members["b#1"].step) == (2, 1)
    t.together("a#1", "b#1")
    assert t.did("a#1", Commit) == t.did("b#1", Commit)
    assert not t.did("b#1", OfferAgain)


def test_what_a_lost_member_has_committed_is_committed_by_those_who_hold_it():
    t = Table("a", "b", "c")
    t.step()
    t.sums("a#1", "b#1", "c#1")
    t.reduce("a#1", "b#1", "c#1")
    t.second("a#1", "c#1")
    t.second("b#1", "c#1")
    assert t.members["c#1"].step == 2
    for m in ("a#1", "b#1"):
        t.happens(m, BreakOff())
    t.together("a#1", "b#1")
    assert t.did("a#1", Commit) == t.did("b#1", Commit) == t.did("c#1", Commit)


def test_results_kept_before_an_absence_are_forgotten_and_a_newer_state_is_asked_for():
    t = Table("a", "b")
    t.step()
    t.members["c#1"], t.effects["c#1"] = machine.newborn("c", "1", None), []
    t.together("a#1", "b#1", "c#1")
    early = t.members["a#1"].ledger
    t.step()
    t.happens("c#1", BreakOff())
    t.together("a#1", "b#1")
    t.step()
    t.together("a#1", "b#1", "c#1")
    assert t.did("c#1", Forget)
    t.happens("c#1", StateArrived(early))
    assert not t.members["c#1"].full
    assert t.did("c#1", Fetch)[-1] == Fetch(3, 1)
    t.happens("c#1", Remind())
    assert t.did("c#1", Fetch)[-2:] == [Fetch(3, 1)] * 2
    t.happens("c#1", StateArrived(t.members["a#1"].ledger))
    assert t.members["c#1"].full


def test_a_result_that_not_all_hold_is_given_up_and_its_windows_are_offered_again():
    t = Table("a", "b")
    t.step()
    t.sums("a#1", "b#1")
    t.reduce("a#1")
    for m in t.members:
        t.happens(m, BreakOff())
    t.together("a#1", "b#1")
    assert len(t.did("a#1", OfferAgain)) == len(t.did("b#1", OfferAgain)) == 1
    t.step()
    assert [c.windows[0].number for c in t.did("a#1", Commit)[-1].record.contributions] == [0, 0]


def test_a_newcomer_keeps_results_until_the_state_meets_them_and_then_counts():
    t = Table("a", "b")
    t.step()
    t.members["c#1"], t.effects["c#1"] = machine.newborn("c", "1", None), []
    t.together("a#1", "b#1", "c#1")
    early = t.members["a#1"].ledger
    assert t.did("c#1", Fetch)[-1] == Fetch(1, None)
    t.step()
    t.step()
    assert len(t.did("c#1", Keep)) == 2
    assert not t.members["c#1"].full
    t.happens("c#1", StateArrived(early))
    assert t.members["c#1"].full
    t.step()  # its empty header was out already
    t.step()
    assert t.members["c#1"].ledger == t.members["a#1"].ledger
    assert t.members["a#1"].ledger.held("c#1")


def test_a_member_alone_without_the_state_cannot_become_the_generation():
    t = Table("a", "b")
    t.step()
    t.members["c#1"], t.effects["c#1"] = machine.newborn("c", "1", None), []
    t.together("a#1", "b#1", "c#1")
    active = t.board.active
    t.together("c#1")
    assert t.board.active == active
    t.together("b#1", "c#1")
    assert t.board.members == {"b#1", "c#1"}


def test_settings_are_taken_up_at_one_step_when_all_accept_them():
    t, new = Table("a", "b"), Terms(1, 12, 1, 3)
    t.happens("a#1", Accepts(new))
    t.step()
    assert t.members["a#1"].ledger.terms.revision == 0
    t.happens("b#1", Accepts(new))
    t.step()
    assert {m.ledger.terms.revision for m in t.members.values()} == {1}


def test_who_leaves_hands_its_chunks_back_in_the_step_that_it_goes_with():
    t = Table("a", "b")
    t.step()
    t.sums("a#1", "b#1")
    t.happens("b#1", Leave())
    t.step()
    assert t.did("b#1", Left) == [Left(1)]
    assert "b#1" not in t.members["a#1"].ledger.stock
    assert t.members["b#1"].phase == Phase.OUT


def test_a_new_incarnation_voids_what_a_latecomer_has_beyond_it():
    t = Table("a", "b")
    t.step()
    kept = t.members["b#1"].ledger
    t.sums("a#1", "b#1")
    t.step()
    t.sums("a#1")
    t.board = store.declared(t.board, 2, kept.step, kept.digest, t.board.active)
    t.happens("a#1", BoardSeen(t.board))
    assert t.did("a#1", Void)
    assert not t.members["a#1"].full
    t.members["b#2"], t.effects["b#2"] = machine.newborn("b", "2", kept), []
    t.together("a#1", "b#2")
    assert t.board.members == {"a#1", "b#2"}
    assert t.members["b#2"].full
    t.happens("a#1", StateArrived(t.members["b#2"].ledger))
    assert t.members["a#1"].ledger == t.members["b#2"].ledger


def note(member: str, seen: int) -> Note:
    return Note(member, seen, 0, "", True)


def test_a_number_is_proposed_once_and_a_note_is_written_once():
    board = store.proposed(Board(), 1, frozenset("ab"))
    assert store.proposed(board, 1, frozenset("c")) is board
    board = store.noted(board, 1, note("a", 0))
    assert store.noted(board, 1, note("a", 5)) is board
    assert store.noted(board, 1, note("x", 0)) is board


def test_activation_and_incarnation_are_compare_and_put():
    board = store.declared(Board(), 1, 0, "d", 0)
    assert store.declared(board, 1, 7, "e", board.active) is board
    assert store.declared(board, 2, 7, "e", 0) is board
    board = store.proposed(board, 2, frozenset("a"))
    assert store.activated(board, 2, 0) is board
    board = store.activated(board, 2, 1)
    assert board.active == 2
    assert store.activated(board, 2, 1) is board


@pytest.mark.parametrize(("seen", "allowed"), [((1, 1), True), ((1, 0), False)])
def test_notes_count_only_if_all_saw_the_active_generation(seen, allowed):
    board = store.declared(Board(), 1, 0, START.digest, 0)
    digest = store.start_of(board.incarnation)[1]
    board = store.proposed(board, 2, frozenset("ab"))
    for m, s in zip("ab", seen, strict=True):
        board = store.noted(board, 2, Note(m, s, 0, digest, True))
    assert may_activate(board, 2) is allowed
    assert conclude(board).step == 0


def test_a_message_of_a_generation_not_yet_seen_is_kept():
    m, _ = machine.advance(Member("a#1", START, generation=3), Second(4, 0, "b#1"))
    assert Second(4, 0, "b#1") in m.heard
    m, _ = machine.advance(m, Second(2, 0, "b#1"))
    assert Second(2, 0, "b#1") not in m.heard
