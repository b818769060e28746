"""A run file becomes validated values, or one message that names place, field, what was seen and the cure."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config import Run, changes, fields, is_live, live_changes, load_run, restart_changes, revision
from trainer.errors import ConfigError
from trainer.runfile import parse_override


@pytest.fixture
def run_file(tmp_path: Path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "run.yml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_an_empty_file_is_a_run_with_the_defaults(run_file):
    run = load_run(run_file(""))
    assert run == Run()
    assert run.accumulation.accum_steps == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "accumulation:\n  acum_steps: 4\n",
            "run.yml:2  accumulation.acum_steps is not a known field\n  Did you mean `accum_steps`?",
        ),
        (
            "accumulation:\n  accum_steps: four\n",
            "run.yml:2  accumulation.accum_steps = 'four': input should be a valid integer",
        ),
        ("accumulation:\n  accum_steps: '8'\n", "run.yml:2  accumulation.accum_steps = '8'"),
        ("accumulation:\n  accum_steps: 0\n", "accum_steps = 0: input should be greater than or equal to 1"),
        ("accumulation:\n  accum_steps: 4.0\n", "run.yml:2  accumulation.accum_steps = 4.0"),
        ("accumulation:\n  accum_steps: true\n", "run.yml:2  accumulation.accum_steps = True"),
        ("accumulation:\n  accum_steps: 1e30\n", "run.yml:2  accumulation.accum_steps = "),
        ("seed: 1\nseed: 2\n", "run.yml:2  seed stands twice, first in line 1"),
        ("a: [1\n", "run.yml:2:1  not valid YAML"),
        ("- 1\n- 2\n", "run.yml  holds a list, expected fields"),
        ("optimizer: 3\n", "run.yml:1  optimizer = 3"),
        ("optimizer: {lr: .nan}\n", "run.yml:1  optimizer.lr = nan: input should be a finite number"),
        ("optimizer: {betas: [0.9, 1.5]}\n", "betas = [0.9, 1.5]: each must be in [0, 1)"),
        ("name: My Run\n", "run.yml:1  name = 'My Run'"),
        ("limits: {threads: 4097}\n", "limits.threads = 4097: input should be less than or equal to 4096"),
        ("precision: float64\namp: fp16\n", "amp = fp16 cannot be combined with precision = float64"),
        ("schedule: {warmup: 10, total: 5}\n", "warmup = 10 must be less than total = 5"),
        (b"name: \xff\xfe\n", "byte 6 is not UTF-8 text"),
        ("accumulation: {accum_steps: null}\n", "accum_steps = null needs a global_batch"),
    ],
)
def test_a_mistake_is_one_message_of_at_most_three_lines(run_file, text, expected):
    with pytest.raises(ConfigError) as caught:
        load_run(run_file(text))
    message = str(caught.value)
    assert expected in message
    assert len(message.splitlines()) <= 3


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.yml: no such file"):
        load_run(tmp_path / "nowhere.yml")


def test_an_override_wins_and_a_wrong_one_says_that_it_came_from_the_command_line(run_file):
    path = run_file("accumulation: {accum_steps: 4}\n")
    assert load_run(path, ["accumulation.accum_steps=8"]).accumulation.accum_steps == 8
    assert load_run(path, {"accumulation.accum_steps": 8}).accumulation.accum_steps == 8
    with pytest.raises(ConfigError, match=r"command line  accumulation\.accum_steps = 0"):
        load_run(path, ["accumulation.accum_steps=0"])
    with pytest.raises(ConfigError, match=r"`accum_steps` is not FIELD=VALUE"):
        load_run(path, ["accum_steps"])


def test_a_number_in_scientific_notation_is_a_number(run_file):
    assert load_run(run_file("optimizer: {eps: 1e-8}\n"), ["optimizer.lr=5e-2"]).optimizer.eps == 1e-8


def test_changes_are_live_or_restart():
    old = Run()
    new = Run.model_validate({"accumulation": {"accum_steps": 8}, "clip_grad_norm": None, "model": {"factory": "gpt"}})
    assert changes(old, new)["accumulation.accum_steps"] == (4, 8)
    assert set(live_changes(old, new)) == {"accumulation.accum_steps", "clip_grad_norm"}
    assert set(restart_changes(old, new)) == {"model.factory"}


def test_every_field_is_either_live_or_restarts():
    live = {name for name in fields(Run()) if is_live(name)}
    assert {"accumulation.accum_steps", "optimizer.lr", "checkpoint.every_steps"} <= live
    assert not live & {"seed", "strategy", "model.factory", "model.args", "optimizer.kind", "precision"}


@given(st.integers(1, 1000), st.integers(1, 64), st.floats(1e-6, 1.0))
def test_a_run_survives_json_and_keeps_its_revision(steps, micro_batch, lr):
    run = Run.model_validate(
        {"accumulation": {"accum_steps": steps, "micro_batch": micro_batch}, "optimizer": {"lr": lr}}
    )
    again = Run.model_validate_json(run.model_dump_json())
    assert again == run
    assert revision(again) == revision(run)
    assert revision(run) != revision(Run.model_validate({"seed": 99}))


def test_a_given_global_batch_survives_json():
    run = Run.model_validate({"accumulation": {"global_batch": 250}})
    assert run.accumulation.accum_steps is None
    assert Run.model_validate_json(run.model_dump_json()) == run


@pytest.mark.parametrize("value", ["2026-99-99", "[" * 5000])
def test_an_override_that_yaml_cannot_read_is_a_mistake_of_the_command_line(value):
    with pytest.raises(ConfigError, match="the value is not valid YAML"):
        parse_override(f"seed={value}")
