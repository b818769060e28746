"""Who proposes what and when: at once where somebody is missed, in turn, and again where nothing comes of it."""

from trainer.membership import board as store
from trainer.membership.board import Announcement, Board, Note
from trainer.membership.hearing import Row
from trainer.membership.incarnation import Announce, Declare, RestartPolicy, Waiting, consider
from trainer.membership.proposing import Proposer, ProposingPolicy, Standing, decide

POLICY = ProposingPolicy(hosts=3)


def running(members: str) -> Board:
    board = store.proposed(store.declared(Board(), 1, 0, "d", 0), 2, frozenset(members))
    return store.activated(board, 2, 1)


def rows(**hears: str) -> dict[str, Row]:
    return {m: Row(m, 1, frozenset(h), full=True) for m, h in hears.items()}


def test_who_misses_a_member_breaks_off_and_the_first_proposes_at_once():
    seen = rows(a="b", b="a", c="ab")
    board = running("abc")
    _, first = decide(Proposer(), Standing("a", inside=True), board, seen, 10.0, POLICY)
    assert first.break_off
    assert first.propose == {"a", "b"}
    assert first.reason == "misses c"
    _, second = decide(Proposer(), Standing("b", inside=True), board, seen, 10.0, POLICY)
    assert second.break_off
    assert second.propose is None


def test_the_others_propose_in_their_turn_if_the_first_cannot():
    seen, board = rows(a="b", b="a"), running("abc")
    p, decision = decide(Proposer(), Standing("b", inside=False), board, seen, 10.0, POLICY)
    assert decision.propose is None
    _, decision = decide(p, Standing("b", inside=False), board, seen, 10.5, POLICY)
    assert decision.propose == {"a", "b"}


def test_a_proposal_that_comes_to_nothing_is_replaced():
    seen, board = rows(a="b", b="a"), running("abc")
    p, _ = decide(Proposer(), Standing("a", inside=False), board, seen, 10.0, POLICY)
    board = store.proposed(board, 3, frozenset("ab"))
    p, waits = decide(p, Standing("a", inside=False), board, seen, 10.2, POLICY)
    assert waits.propose is None
    p, waits = decide(p, Standing("a", inside=False), board, seen, 12.1, POLICY)
    assert waits.propose is None
    _, again = decide(p, Standing("a", inside=False), board, seen, 12.3, POLICY)
    assert again.propose == {"a", "b"}


def test_a_proposal_with_a_void_note_is_replaced_at_once():
    seen, board = rows(a="b", b="a"), running("abc")
    p, _ = decide(Proposer(), Standing("a", inside=False), board, seen, 10.0, POLICY)
    board = store.noted(store.proposed(board, 3, frozenset("ab")), 3, Note("b", 1, 0, "", True))
    _, again = decide(p, Standing("a", inside=False), board, seen, 10.2, POLICY)
    assert again.propose == {"a", "b"}


def test_a_whole_generation_is_left_alone():
    _, nothing = decide(Proposer(), Standing("a", True), running("abc"), rows(a="bc", b="ac", c="ab"), 10.0, POLICY)
    assert (nothing.break_off, nothing.propose) == (False, None)


def test_a_new_incarnation_begins_with_all_hosts_or_after_a_while():
    board, seen = store.declared(Board(), 1, 0, "d", 0), rows(a="b", b="a")
    p, early = decide(Proposer(), Standing("a", False), board, seen, 10.0, POLICY)
    assert (early.propose, early.reason) == (None, "2 of 3 hosts are here")
    _, late = decide(p, Standing("a", False), board, seen, 25.0, POLICY)
    assert late.propose == {"a", "b"}


RESTART = RestartPolicy(frozenset("abc"))


def gone() -> tuple[Board, dict[str, Row]]:
    return running("x"), rows(a="b", b="a", x="")


def test_a_restart_is_declared_from_the_best_when_all_hosts_have_announced():
    board, seen = gone()
    mine = Announcement("a", 5, "e", 1)
    w, nothing = consider(Waiting(), "a", mine, board, seen, 10.0, RESTART)
    assert nothing is None
    w, said = consider(w, "a", mine, board, seen, 20.0, RESTART)
    assert said == Announce(mine)
    for announcement in (mine, Announcement("b", 7, "f", 1), Announcement("c", 99, "old", 0)):
        board = store.announced(board, announcement)
    _, declared = consider(w, "a", mine, board, seen, 21.0, RESTART)
    assert declared == Declare(2, 7, "f", 2, "all hosts have announced; b has step 7")


def test_a_restart_waits_for_all_but_not_for_ever_and_the_operator_can_say_go():
    board, seen = gone()
    mine = Announcement("a", 5, "e", 1)
    board = store.announced(board, mine)
    w, nothing = consider(Waiting(10.0), "a", mine, board, seen, 69.0, RESTART)
    assert nothing is None
    _, declared = consider(w, "a", mine, board, seen, 70.0, RESTART)
    assert isinstance(declared, Declare)
    assert declared.reason == "without b, c; a has step 5"
    _, declared = consider(w, "a", mine, board, seen, 20.0, RESTART, operator_says_go=True)
    assert isinstance(declared, Declare)


def test_there_is_no_restart_while_somebody_with_the_state_is_heard_even_at_second_hand():
    board = running("c")
    seen = rows(a="b", b="ac", c="b")
    assert consider(Waiting(0.0), "a", Announcement("a", 5, "e"), board, seen, 99.0, RESTART) == (Waiting(), None)
