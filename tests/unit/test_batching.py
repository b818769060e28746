"""The arithmetic of windows: nothing lost, nothing dealt twice, refusals that name the nearest that works."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.batching import (
    Window,
    accum_steps,
    batch_text,
    check_relation,
    deal,
    global_batch,
    lr_scale,
    step_plan,
    windows,
)
from trainer.config import Accumulation
from trainer.errors import ConfigError

sizes = st.integers(1, 40)


@given(start=st.integers(0, 1000), samples=st.integers(1, 300), micro_batch=sizes, replicas=st.integers(1, 9))
def test_every_position_of_a_window_is_dealt_to_exactly_one_replica(start, samples, micro_batch, replicas):
    window = Window(0, start, start + samples)
    shares = [deal(window, micro_batch, replicas, r) for r in range(replicas)]
    positions = sorted(p for share in shares for part in share for p in part)
    assert positions == list(range(start, start + samples))
    counts = [len(share) for share in shares]
    assert max(counts) - min(counts) <= 1
    assert all(len(part) <= micro_batch for share in shares for part in share)


@given(samples=st.integers(1, 500), start=st.integers(0, 499), batch=st.integers(1, 200))
def test_windows_cover_the_rest_of_an_epoch_and_never_cross_its_end(samples, start, batch):
    found = list(windows(3, min(start, samples), samples, batch))
    assert [p for w in found for p in range(w.start, w.stop)] == list(range(min(start, samples), samples))
    assert all(w.samples <= batch and w.epoch == 3 for w in found)


@given(micro_batch=sizes, steps=sizes, replicas=st.integers(1, 9))
def test_a_given_accum_steps_is_always_legal_and_the_global_batch_follows(micro_batch, steps, replicas):
    given_steps = Accumulation(accum_steps=steps, micro_batch=micro_batch)
    check_relation(given_steps, replicas)
    assert global_batch(given_steps, replicas) == micro_batch * steps * replicas
    assert accum_steps(given_steps, replicas) == steps


def test_exact_refuses_a_remainder_and_names_the_nearest_that_divide():
    with pytest.raises(ConfigError, match=r"global_batch = 250 .* \(= 24\)\n.*240 or 264"):
        check_relation(Accumulation(global_batch=250, relation="exact"), 3)
    check_relation(Accumulation(global_batch=250), 3)
    check_relation(Accumulation(global_batch=240, relation="exact"), 3)


def test_both_given_and_disagreeing_are_refused():
    with pytest.raises(ConfigError, match="disagrees with accum_steps = 4"):
        check_relation(Accumulation(global_batch=100, accum_steps=4), 3)
    check_relation(Accumulation(global_batch=96, accum_steps=4), 3)


def test_the_bound_on_the_global_batch_holds():
    with pytest.raises(ConfigError, match="over accumulation.max_global_batch = 64"):
        check_relation(Accumulation(max_global_batch=64), 3)


def test_the_virtual_batch_is_spelled_out():
    assert batch_text(Accumulation(), 3) == "global batch 96 = micro_batch 8 × accum_steps 4 × 3 replicas"
    assert "dealt out of 264 places" in batch_text(Accumulation(global_batch=250), 3)


@pytest.mark.parametrize(("rule", "expected"), [("linear", 2.0), ("sqrt", 2**0.5), ("none", 1.0)])
def test_the_learning_rate_follows_the_global_batch(rule, expected):
    assert lr_scale(rule, 192, 96) == pytest.approx(expected)


def test_the_last_window_of_an_epoch_counts_as_a_step():
    plan = step_plan(10, 2, 1, 2)
    assert (plan.micro_batches_per_epoch, plan.optimizer_steps_per_epoch, plan.last_window_micro_batches) == (5, 3, 1)
    assert step_plan(10, 4, 1, 2, drop_last=True).micro_batches_per_epoch == 2
