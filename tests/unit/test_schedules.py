"""The learning rate as arithmetic: positions in steps or samples, ramps from wherever the rate is."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config import Run
from trainer.data.course import Progress
from trainer.optim.schedules import Level, Position, Shape
from trainer.settings.inforce import InForce


def test_warm_up_reaches_the_full_rate_at_its_last_step_and_linear_ends_at_nothing():
    shape = Shape("linear", warmup=3, total=8)
    factors = [shape.factor(Position(step, 0, 1)) for step in range(9)]
    assert factors == pytest.approx([1 / 3, 2 / 3, 1, 1, 0.8, 0.6, 0.4, 0.2, 0])


def test_cosine_is_one_at_its_start_half_in_the_middle_and_nothing_at_its_end():
    shape = Shape("cosine", warmup=0, total=10)
    assert [shape.factor(Position(s, 0, 1)) for s in (0, 5, 10, 11)] == pytest.approx([1, 0.5, 0, 0])
    assert shape.factor(Position(2, 0, 1)) == pytest.approx(0.5 * (1 + math.cos(math.pi * 0.2)))


@given(window=st.integers(1, 50), steps=st.integers(0, 200))
def test_in_samples_the_shape_does_not_depend_on_the_window(window, steps):
    by_samples = Shape("linear", warmup=0, total=10_000, unit="samples")
    by_steps = Shape("linear", warmup=0, total=10_000)
    at = Position(steps, steps * window, window)
    assert by_samples.factor(at) == by_steps.factor(Position(steps * window, 0, 1))


def test_warm_up_in_samples_counts_the_windows_own_samples():
    shape = Shape("constant", warmup=100, unit="samples")
    assert [shape.factor(Position(s, 32 * s, 32)) for s in range(5)] == pytest.approx([0.32, 0.64, 0.96, 1.0, 1.0])


def test_a_ramp_moves_in_equal_parts_and_a_second_one_starts_where_the_first_is():
    level = Level.constant(1.0).towards(2.0, step=10, ramp_steps=5)
    assert [level.at(s) for s in (10, 11, 12, 13, 14, 15)] == pytest.approx([1.2, 1.4, 1.6, 1.8, 2.0, 2.0])
    again = level.towards(0.4, step=12, ramp_steps=2)
    assert [again.at(s) for s in (12, 13, 14)] == pytest.approx([0.9, 0.4, 0.4])
    assert Level.constant(1.0).towards(3.0, step=7, ramp_steps=0).at(7) == 3.0


def run(**values):
    return Run.model_validate({"epochs": 3, "optimizer": {"lr": 0.1}, **values})


def test_the_rate_follows_a_live_change_of_the_window_from_the_batch_that_the_run_began_with():
    start = InForce.at_start(run(lr_scaling={"ramp_steps": 2}), 3, 1000)
    assert (start.base_batch, start.rate(Position(0, 0, 96))) == (96, 0.1)
    doubled = run(lr_scaling={"ramp_steps": 2}, accumulation={"accum_steps": 8})
    after = start.changed(doubled, 3, 1000, Progress(step=4, position=384))
    assert [after.rate(Position(s, 0, 192)) for s in (4, 5, 6)] == pytest.approx([0.15, 0.2, 0.2])
    back = after.changed(start.run, 3, 1000, Progress(step=9, position=400))
    assert back.rate(Position(11, 0, 96)) == pytest.approx(0.1)


@pytest.mark.parametrize("rule, rate", [("linear", 0.3), ("sqrt", 0.1 * math.sqrt(3)), ("none", 0.1)])
def test_the_rate_scales_with_the_global_batch_by_the_rule(rule, rate):
    start = InForce.at_start(run(lr_scaling={"rule": rule, "base_batch": 32}), 3, 1000)
    assert start.rate(Position(0, 0, 96)) == pytest.approx(rate)


def test_a_schedule_without_an_end_ends_with_the_run_whatever_its_unit():
    by_steps = InForce.at_start(run(schedule={"kind": "linear"}), 1, 100)
    by_samples = InForce.at_start(run(schedule={"kind": "linear", "unit": "samples"}), 1, 100)
    assert (by_steps.total, by_samples.total) == (12, 300)  # windows of 32: 4 an epoch
    limited = InForce.at_start(run(schedule={"kind": "linear"}, max_steps=5), 1, 100)
    assert limited.total == 5


def test_settings_in_force_survive_a_checkpoint():
    before = InForce.at_start(run(), 2, 1000).changed(run(clip_grad_norm=2.0), 2, 1000, Progress(step=3))
    assert InForce.from_json(before.to_json()) == before


def test_a_resume_in_the_middle_of_a_ramp_leaves_the_ramp_as_it_is():
    start = InForce.at_start(run(lr_scaling={"ramp_steps": 10}), 1, 1000)
    changed = run(lr_scaling={"ramp_steps": 10}, optimizer={"lr": 0.5})
    ramp = start.changed(changed, 1, 1000, Progress(step=4))
    resumed = ramp.changed(changed, 1, 1000, Progress(step=8))
    assert [resumed.level.at(step) for step in range(8, 16)] == [ramp.level.at(step) for step in range(8, 16)]


def test_windows_that_were_skipped_do_not_move_the_end_of_the_schedule_at_a_resume():
    settings = run(schedule={"kind": "linear"})
    start = InForce.at_start(settings, 1, 100)
    batch = start.global_batch
    assert start.changed(settings, 1, 100, Progress(step=1, position=2 * batch, windows=2, skipped=1)) == start
