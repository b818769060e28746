"""Away: by the link's own history, with hysteresis, or by the user's bound; and what a member is worth meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.membership.away import Away, AwayPolicy, Link, Present, heard, judge, limit_s, silent
from trainer.membership.hearing import Row, best_set, both_ways, merged
from trainer.membership.local_mode import GoOn, LocalBounds, Pause, discount, expired, local_mode

POLICY = AwayPolicy()


def beats(link: Link, start_s: float, round_trips: list[float], policy: AwayPolicy = POLICY) -> tuple[Link, float]:
    for round_trip in round_trips:
        start_s += policy.beat_s
        link = heard(silent(link, start_s, policy), start_s, round_trip, policy)
    return link, start_s


def usual(round_trip_s: float = 0.18, policy: AwayPolicy = POLICY) -> tuple[Link, float]:
    return beats(Link(0.0), 0.0, [round_trip_s + 0.002 * (i % 5) for i in range(40)], policy)


def test_a_stranger_is_present_after_a_few_beats_in_time():
    link, now_s = beats(Link(0.0), 0.0, [0.18] * 3)
    assert judge(link, now_s, POLICY) == Away("heard again, 3 of 4 beats in time")
    link, now_s = beats(link, now_s, [0.18])
    assert judge(link, now_s, POLICY) == Present()


def test_silence_is_judged_by_the_link_s_own_history_and_said_in_words():
    link, now_s = usual()
    assert judge(silent(link, now_s + 0.5, POLICY), now_s + 0.5, POLICY) == Present()
    gone = silent(link, now_s + 0.7, POLICY)
    assert judge(gone, now_s + 0.7, POLICY) == Away(
        "silent for 0.7 s, allowed 0.58 s = a beat + median + 6 MAD of 40 beats"
    )


def test_one_late_beat_is_noise_and_three_are_not():
    link, now_s = usual()
    link, now_s = beats(link, now_s, [0.9, 0.9, 0.18])
    assert judge(link, now_s, POLICY) == Present()
    link, now_s = beats(link, now_s, [0.9, 0.9, 0.9])
    assert isinstance(judge(link, now_s, POLICY), Away)


def test_late_beats_do_not_raise_the_limit():
    link, now_s = usual()
    before = limit_s(link, POLICY)
    link, now_s = beats(link, now_s, [0.9, 0.9, 0.18] * 40)
    assert judge(link, now_s, POLICY) == Present()
    assert limit_s(link, POLICY) == pytest.approx(before, abs=0.05)


def test_it_is_back_only_after_several_good_beats_in_a_row():
    link, now_s = beats(*usual(), [0.9] * 5)
    link, now_s = beats(link, now_s, [0.18, 0.18, 0.18, 0.9, 0.18, 0.18, 0.18])
    assert isinstance(judge(link, now_s, POLICY), Away)
    link, now_s = beats(link, now_s, [0.18])
    assert judge(link, now_s, POLICY) == Present()


def test_a_link_that_became_slower_for_good_is_learnt_anew():
    link, now_s = beats(*usual(), [0.9 + 0.002 * (i % 3) for i in range(50)])
    assert isinstance(judge(link, now_s, POLICY), Away)
    link, now_s = beats(link, now_s, [0.9 + 0.002 * (i % 3) for i in range(15)])
    assert judge(link, now_s, POLICY) == Present()
    assert limit_s(link, POLICY) > 0.9


def test_the_user_s_bound_replaces_what_was_learnt_and_is_never_learnt_away():
    strict = AwayPolicy(latency_s=0.1)
    link, now_s = usual(0.18, strict)
    assert judge(link, now_s, strict) == Away("round trip 188 ms, allowed 100 ms = away.latency_ms")
    link, now_s = beats(link, now_s, [0.18] * 200, strict)
    assert isinstance(judge(link, now_s, strict), Away)


@given(st.lists(st.floats(0.001, 5.0), max_size=60))
def test_the_limit_is_over_what_is_usual_and_bounded(round_trips):
    link, _ = beats(Link(0.0), 0.0, round_trips)
    assert POLICY.floor_s <= limit_s(link, POLICY) <= max([0.0, *link.usual]) + POLICY.ceiling_s
    assert not link.usual or limit_s(link, POLICY) >= sorted(link.usual)[(len(link.usual) - 1) // 2] + POLICY.floor_s


def test_local_mode_goes_on_within_its_bounds_and_then_says_why_it_pauses():
    bounds = LocalBounds(seconds=60, windows=10, loan_s=90)
    assert local_mode(9, 0.0, 59.0, bounds) == GoOn()
    assert local_mode(10, 0.0, 59.0, bounds) == Pause("10 windows summed while away, the bound is 10")
    assert local_mode(3, 0.0, 60.0, bounds) == Pause("away for 60 s, the bound is 60 s")


def test_a_loan_outlasts_local_mode():
    with pytest.raises(ValueError, match="loan_s = 60 must be over seconds = 60"):
        LocalBounds(seconds=60, loan_s=60)
    assert expired({"a": 0.0, "b": 50.0}, 100.0, LocalBounds(seconds=60, loan_s=90)) == {"a"}


def test_staleness_discounts_and_fresh_sums_count_in_full():
    assert discount(0, 0.1) == 1.0
    assert discount(10, 0.1) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="-1 steps behind"):
        discount(-1, 0.1)


def rows(**hears: str) -> dict[str, Row]:
    return {m: Row(m, 1, frozenset(h), full=True) for m, h in hears.items()}


def test_a_one_way_cut_is_no_connection():
    seen = rows(a="bc", b="ac", c="b")
    assert both_ways(seen, "b", "c")
    assert not both_ways(seen, "a", "c")


def test_all_find_the_same_set_and_prefer_who_is_in_already():
    seen = rows(a="c", b="c", c="ab")  # a and b cannot hear each other
    assert {best_set(seen, frozenset("bc"), me) for me in "abc"} == {frozenset("bc")}
    assert {best_set(seen, frozenset("ac"), me) for me in "abc"} == {frozenset("ac")}


def test_a_set_without_the_state_is_not_chosen_however_large():
    seen = rows(a="b", b="a", c="", d="c") | {m: Row(m, 1, frozenset("ab"), full=False) for m in "ab"}
    assert best_set(seen, frozenset("abc"), "c") == frozenset("c")


def test_the_newest_row_of_each_counts_in_any_order():
    old, new = Row("a", 1, frozenset()), Row("a", 2, frozenset("b"))
    assert merged(merged({}, [new]), [old]) == merged(merged({}, [old]), [new]) == {"a": new}
