"""Checkers against small histories built by hand, good and bad: what they find is what a careful reader would."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.batching import Window, deal
from trainer.records.checkers import EverySampleOnce, OneHistory, StepsWithoutGap
from trainer.records.events import (
    Checkpoint,
    Event,
    Resumed,
    Settings,
    Skipped,
    Span,
    Started,
    Step,
    WindowRead,
    read_digest,
)
from trainer.records.history import Entry, Histories
from trainer.records.redeploy import NoStepLost, redeployed
from trainer.records.verdict import Broken, Kept, Unknown, check


def started(world: int, incarnation: str | None = None, samples: int | None = None) -> Started:
    return Started(
        world=world, run="t", revision="r", accum_steps=1, global_batch=8, samples=samples, incarnation=incarnation
    )


def resumed(step: int, lineage: str | None = None, epoch: int | None = None, position: int | None = None) -> Resumed:
    return Resumed(step=step, source="here", lineage=lineage, epoch=epoch, position=position)


def step(
    number: int, start: int, stop: int, read: Iterable[Span] | None = None, epoch: int = 0, **more: object
) -> Step:
    spans = ((start, stop),) if read is None else tuple(read)
    return Step(step=number, epoch=epoch, start=start, stop=stop, read=spans, **more)  # type: ignore[arg-type]


def history(*ranks: list[Event], t: float = 0.0) -> Histories:
    """One list of events a rank, on hosts a, b, c; a second passes between the events of a rank."""
    hosts = "abcdefgh"
    return Histories(
        tuple(
            Entry(t + i, hosts[rank], rank, event)
            for rank, events in enumerate(ranks)
            for i, event in enumerate(events)
        )
    )


def both(first: Histories, second: Histories) -> Histories:
    return Histories(first.entries + second.entries)


def test_a_whole_epoch_read_once_is_kept() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 8, 12), step(3, 0, 8, epoch=1)])
    assert EverySampleOnce(12).judge(told) == Kept(
        "1 whole epochs of 12 samples and epoch 1 up to position 8, 3 windows"
    )


def test_an_empty_history_is_not_passed() -> None:
    assert EverySampleOnce(8).judge(Histories(())) == Unknown("no window in the history")
    assert OneHistory().judge(Histories(())) == Unknown("no window in the history")
    assert StepsWithoutGap().judge(Histories(())) == Unknown("no step in the history")


def test_a_window_counted_twice_is_found() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 0, 8)])
    assert EverySampleOnce(8).judge(told) == Broken("epoch 0: positions 0-8 are in step 1 and in step 2")
    same_number = history([started(1), step(1, 0, 8), step(1, 0, 8)])
    assert EverySampleOnce(8).judge(same_number) == Broken("epoch 0: positions 0-8 are in step 1 and in step 1")
    assert StepsWithoutGap().judge(same_number) == Broken("step 2 is missing: step 1 follows step 1")
    overlapping = history([started(1), step(1, 0, 8), step(2, 4, 12)])
    assert EverySampleOnce(12).judge(overlapping) == Broken("epoch 0: positions 4-8 are in step 1 and in step 2")


def test_a_window_that_is_left_out_is_found() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 16, 24)])
    assert EverySampleOnce(24).judge(told) == Broken("epoch 0: positions 8-16 are in no step (step 1, then step 2)")


def test_an_epoch_cut_short_is_found() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 0, 8, epoch=1)])
    assert EverySampleOnce(12).judge(told) == Broken("epoch 0 ends at position 8 of 12: step 2 is of epoch 1")


def test_epochs_of_unequal_length_are_found_without_being_told_the_length() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 0, 6, epoch=1), step(3, 0, 8, epoch=2)])
    assert EverySampleOnce().judge(told) == Broken("epoch 1 ends at position 6 of 8: step 3 is of epoch 2")


def test_a_position_that_two_ranks_read_is_found() -> None:
    told = history([started(2), step(1, 0, 8, [(0, 5)])], [started(2), step(1, 0, 8, [(4, 8)])])
    assert EverySampleOnce(8).judge(told) == Broken("epoch 0, step 1: positions 4-5 were read twice")


def test_a_position_that_nobody_read_is_found() -> None:
    told = history([started(2), step(1, 0, 8, [(0, 4)])], [started(2), step(1, 0, 8, [(4, 7)])])
    assert EverySampleOnce(8).judge(told) == Broken("epoch 0, step 1: positions 7-8 were read by nobody")


def test_a_position_outside_the_window_is_found() -> None:
    told = history([started(1), step(1, 0, 8, [(0, 9)])])
    assert EverySampleOnce(16).judge(told) == Broken("epoch 0, step 1: positions 0-9 were read, the window is 0-8")


def test_what_was_done_after_the_checkpoint_is_void_and_done_again() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 8, 16), started(1), resumed(1), step(2, 8, 16)])
    report = check(told, EverySampleOnce(16), OneHistory(), StepsWithoutGap())
    report.raise_unless_kept()


def test_a_resume_that_forgets_a_step_is_found() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 8, 16), started(1), resumed(1), step(2, 16, 24)])
    assert EverySampleOnce(24).judge(told) == Broken("epoch 0: positions 8-16 are in no step (step 1, then step 2)")


def test_a_resume_that_repeats_a_step_is_found() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 8, 16), started(1), resumed(2), step(3, 8, 16)])
    assert EverySampleOnce(16).judge(told) == Broken("epoch 0: positions 8-16 are in step 2 and in step 3")


def test_a_start_from_nothing_voids_all_that_was_before() -> None:
    told = history([started(1), step(1, 0, 8), step(2, 8, 16), started(1), step(1, 0, 8)])
    verdict = EverySampleOnce(16).judge(told)
    assert verdict == Kept("0 whole epochs of 16 samples and epoch 0 up to position 8, 1 windows")


def test_a_host_that_left_does_not_keep_its_void_steps_alive() -> None:
    before = history(
        [started(2), step(1, 0, 8, [(0, 4)]), step(2, 8, 16, [(8, 12)])],
        [started(2), step(1, 0, 8, [(4, 8)]), step(2, 8, 16, [(12, 16)])],
    )
    after = history([started(1), resumed(1), step(2, 8, 12), step(3, 12, 16)], t=100.0)
    check(both(before, after), EverySampleOnce(16), StepsWithoutGap()).raise_unless_kept()


def test_the_lineage_named_in_the_checkpoint_wins_over_time() -> None:
    """The second start found only an old checkpoint; the third has the newer one of the first."""
    told = history(
        [
            *[started(1, "one"), step(1, 0, 8), step(2, 8, 16)],
            *[started(1, "two"), resumed(1, "one"), step(2, 8, 12), step(3, 12, 14)],
            *[started(1, "three"), resumed(2, "one"), step(3, 16, 24)],
        ]
    )
    check(told, EverySampleOnce(24), StepsWithoutGap()).raise_unless_kept()


def test_a_skipped_window_before_the_checkpoint_is_not_lost_by_the_resume() -> None:
    skipped = Skipped(step=2, epoch=0, start=8, stop=16, read=((8, 16),), reason="not finite")
    told = history([started(1), step(1, 0, 8), skipped, started(1), resumed(1, epoch=0, position=16), step(2, 16, 24)])
    verdict = EverySampleOnce(24).judge(told)
    assert isinstance(verdict, Kept) and "1 windows were read and left out" in verdict.note


def test_a_resume_from_steps_that_nobody_told_of_is_unknown() -> None:
    told = history([started(1, "two"), resumed(5, "one"), step(6, 40, 48)])
    assert EverySampleOnce(48).judge(told) == Unknown("no history of the steps up to 5, where two began")


def test_a_rank_whose_record_is_lost_is_unknown_without_witness_and_kept_with_it() -> None:
    own: list[Span] = [(0, 4)]
    alone = history([started(2), step(1, 0, 8, own)])
    assert EverySampleOnce(8).judge(alone) == Unknown(
        "epoch 0, step 1: no record of rank 1, nor a witness of what it read"
    )
    witness = (read_digest(own), read_digest([(4, 8)]))
    assert isinstance(EverySampleOnce(8).judge(history([started(2), step(1, 0, 8, own, witness=witness)])), Kept)


def test_a_lost_rank_that_read_something_else_is_not_passed() -> None:
    witness = (read_digest([(0, 4)]), read_digest([(4, 7)]))
    told = history([started(2), step(1, 0, 8, [(0, 4)], witness=witness)])
    assert isinstance(EverySampleOnce(8).judge(told), Unknown)


def test_two_lost_ranks_are_vouched_for_by_the_third() -> None:
    window = Window(0, 0, 12)
    shares = [tuple((r.start, r.stop) for r in deal(window, 2, 3, rank)) for rank in range(3)]
    witness = tuple(read_digest(share) for share in shares)
    told = history([started(3), step(1, 0, 12, shares[0], witness=witness, micro_batch=2)])
    assert isinstance(EverySampleOnce(12).judge(told), Kept)


def test_a_rank_that_told_the_others_something_else_than_it_wrote_is_found() -> None:
    witness = (read_digest([(0, 4)]), read_digest([(5, 8)]))
    told = history(
        [started(2), step(1, 0, 8, [(0, 4)], witness=witness)], [started(2), step(1, 0, 8, [(4, 8)], witness=witness)]
    )
    assert EverySampleOnce(8).judge(told) == Broken(
        "epoch 0, step 1: rank 1 wrote that it read 4-8, but told rank 0 otherwise"
    )


@pytest.mark.parametrize(("field", "value"), [("loss", 0.75), ("weight", 9.0), ("lr", 0.2), ("stop", 16)])
def test_replicas_that_tell_different_things_of_a_step_are_found(field: str, value: float) -> None:
    told = step(1, 0, 8, loss=0.5, weight=8.0, lr=0.1)
    histories = history([started(2), told], [started(2), replace(told, **{field: value})])
    verdict = OneHistory().judge(histories)
    assert verdict == Broken(f"step 1: {field} is {getattr(told, field)} on rank 0, {value} on rank 1")


def test_a_window_skipped_by_one_replica_only_is_found() -> None:
    skipped = Skipped(step=1, epoch=0, start=0, stop=8, read=((0, 8),), reason="not finite")
    histories = history([started(2), step(1, 0, 8)], [started(2), skipped])
    assert OneHistory().judge(histories) == Broken("step 1: step on rank 0, skipped on rank 1")


def test_checkpoints_that_differ_between_replicas_are_found() -> None:
    ends = [Checkpoint(step=1, digest=digest, seconds=0.1, bytes=1) for digest in ("aa", "bb")]
    histories = history(*[[started(2), step(1, 0, 8), end] for end in ends])
    assert OneHistory().judge(histories) == Broken("checkpoint 1: aa on rank 0, bb on rank 1")


def settings(after_step: int) -> Settings:
    name = "accumulation.accum_steps"
    return Settings(step=after_step, revision="cafe", before={name: 4}, after={name: 8})


def test_a_replica_that_goes_on_without_the_new_settings_is_found() -> None:
    told = [step(1, 0, 8), step(2, 8, 16), step(3, 16, 24)]
    histories = history([started(2), told[0], settings(1), *told[1:]], [started(2), *told])
    assert OneHistory().judge(histories) == Broken("rank 1 made step 3 without the settings cafe of step 1")


def test_replicas_that_agree_are_kept() -> None:
    told: list[Event] = [started(2), step(1, 0, 8), settings(1), step(2, 8, 24)]
    assert OneHistory().judge(history(told, told)) == Kept("2 windows")


def test_one_replica_of_two_cannot_agree_with_itself() -> None:
    assert isinstance(OneHistory().judge(history([started(2), step(1, 0, 8)])), Unknown)


def test_a_live_change_costs_no_step_and_no_restart() -> None:
    told: list[Event] = [started(2), step(1, 0, 8), settings(1), step(2, 8, 24)]
    histories = history(told, told)
    found = redeployed(histories, since_t=0.5)
    assert found is not None
    assert (found.step, found.t, found.ranks, found.world, found.steps_lost, found.restarts) == (1, 2.0, 2, 2, 0, 0)
    assert isinstance(NoStepLost(since_t=0.5).judge(histories), Kept)


def test_a_change_by_restart_shows_its_restarts_and_lost_steps() -> None:
    told = [started(1), step(1, 0, 8), step(2, 8, 16), started(1), resumed(1), settings(1), step(2, 8, 24)]
    assert NoStepLost(since_t=0.5).judge(history(told)) == Broken("settings cafe: 1 steps lost, 1 restarts")


def test_a_change_that_one_rank_has_not_taken_up_is_found() -> None:
    histories = history([started(2), step(1, 0, 8), settings(1)], [started(2), step(1, 0, 8)])
    assert NoStepLost(since_t=0.5).judge(histories) == Broken("settings cafe: in force on 1 of 2 ranks")


def test_no_change_of_settings_is_unknown() -> None:
    assert isinstance(NoStepLost(since_t=0.0).judge(history([started(1), step(1, 0, 8)])), Unknown)


def test_a_damaged_history_is_unknown_to_every_checker() -> None:
    told = Histories(history([started(1), step(1, 0, 8)]).entries, damaged=("a-0.jsonl:2",))
    assert isinstance(check(told, EverySampleOnce(8)).worst, Unknown)


def test_a_checker_that_fails_says_unknown() -> None:
    class Failing:
        def judge(self, histories: Histories) -> Kept:
            raise KeyError("x")

    assert check(Histories(()), Failing()).worst == Unknown("the checker failed: KeyError: 'x'")


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, Histories]:
    """A right run: epochs over starts with other world sizes and windows, each from a checkpoint of an earlier one."""
    samples = draw(st.integers(1, 40))
    chain: list[tuple[str, int, int, int, int]] = []  # incarnation, step, epoch, start, stop
    parts: list[Histories] = []
    for number in range(draw(st.integers(1, 4))):
        name = f"i{number}"
        chain = chain[: draw(st.integers(0, len(chain)))]
        world, micro, batch = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 17))
        at = (chain[-1][2], chain[-1][4]) if chain else (0, 0)
        base = resumed(len(chain), chain[-1][0], *at) if chain else None
        ranks: list[list[Event]] = [[started(world, name, samples), *([base] if base else [])] for _ in range(world)]
        for _ in range(draw(st.integers(0, 8))):
            epoch, start = at if at[1] < samples else (at[0] + 1, 0)
            window = Window(epoch, start, min(start + batch, samples))
            for rank, events in enumerate(ranks):
                share = [(r.start, r.stop) for r in deal(window, micro, world, rank)]
                events.append(step(len(chain) + 1, window.start, window.stop, share, epoch))
            at = (epoch, window.stop)
            chain.append((name, len(chain) + 1, epoch, start, window.stop))
        parts.append(history(*ranks, t=1000.0 * number))
    return samples, Histories(tuple(e for part in parts for e in part.entries))


@given(runs())
def test_every_right_run_is_kept(run: tuple[int, Histories]) -> None:
    samples, histories = run
    worst = check(histories, EverySampleOnce(), OneHistory(), StepsWithoutGap()).worst
    assert not isinstance(worst, Broken)
    if any(isinstance(e.event, WindowRead) for e in histories.entries[-1:]):
        assert isinstance(EverySampleOnce(samples).judge(histories), Kept)


@given(runs(), st.data())
def test_no_right_run_is_kept_with_one_read_taken_away_from_its_last_window(
    run: tuple[int, Histories], data: st.DataObject
) -> None:
    samples, histories = run
    last = histories.entries[-1].event
    if not isinstance(last, Step) or not last.read:
        return
    fewer = replace(last, read=last.read[:-1])
    changed = (*histories.entries[:-1], replace(histories.entries[-1], event=fewer))
    assert isinstance(EverySampleOnce(samples).judge(Histories(changed)), Broken)
