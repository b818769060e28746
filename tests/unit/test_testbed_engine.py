"""An engine that cannot be reached is one message that says what to do."""

import pytest

from tests.testbed import engine
from tests.testbed.errors import BedError
from tests.testbed.wait import wait_for


def test_a_named_engine_that_does_not_answer_is_said_by_its_name(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(BedError, match=r"No Docker engine answers at DOCKER_HOST=unix://.*none\.sock"):
        engine.connect(tmp_path, lambda line: None)


def test_waiting_ends_with_the_reason():
    with pytest.raises(BedError, match=r"the thing: not within 0 s \(division by zero\)"):
        wait_for(lambda: 1 / 0, "the thing", within_s=0.0)


def test_waiting_gives_what_was_waited_for():
    answers = iter([None, 0, "here"])
    assert wait_for(lambda: next(answers), "an answer", within_s=5, every_s=0.001) == "here"
