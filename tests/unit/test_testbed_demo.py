"""The figures of the demo come from histories and recaps, and a promise that was not kept is named."""

from dataclasses import replace

import pytest

from tests.testbed.demo.measures import Seen, broken_promises, summary
from tests.testbed.errors import BedError
from tests.testbed.playbook import Outcome, Recap
from trainer.records.events import Evaluated, Resumed, Settings, Started, Step
from trainer.records.history import Entry, Histories

HOSTS = ("ap-1", "eu-1", "na-1")
BATCH, CHANGE_AT, STEPS = 12, 10, 25
COMMAND_T = 109.0


def told_by(rank, host):
    """One host's history: 25 steps of 12 samples, 4 each; new settings after step 10, which is at t = 110."""
    yield Entry(
        100.0,
        host,
        rank,
        Started(world=3, run="demo", revision="a", accum_steps=4, global_batch=BATCH, samples=300, incarnation="x"),
    )
    for step in range(1, STEPS + 1):
        start = (step - 1) * BATCH
        share = start + 4 * rank
        yield Entry(
            100.0 + step,
            host,
            rank,
            Step(
                step=step,
                epoch=0,
                start=start,
                stop=start + BATCH,
                read=((share, share + 4),),
                weight=float(BATCH),
                loss=2.0 / step,
                lr=0.1,
                global_batch=BATCH,
            ),
        )
        if step == CHANGE_AT:
            event = Settings(step=step, revision="b", before={"accum_steps": 4}, after={"accum_steps": 8})
            yield Entry(110.0 + rank / 10, host, rank, event)
    yield Entry(130.0, host, rank, Evaluated(step=STEPS, loss=0.1, accuracy=0.95))


@pytest.fixture
def histories():
    return Histories(tuple(entry for rank, host in enumerate(HOSTS) for entry in told_by(rank, host)))


def outcome(changed=0, started=COMMAND_T):
    return Outcome(("ansible-playbook",), 0, started, 12.34, {host: Recap(20, changed, 0, 0) for host in HOSTS}, "")


def seen(**changes):
    values = {"host_image": "ready", "image_seeded": False, "links": {}, "redeploy": outcome(), "second": outcome()}
    return Seen(**(values | {"receipts": 3, "wall_s": 99.0} | changes))


def test_every_figure_is_what_the_hosts_wrote(histories):
    figures = summary(histories, seen())
    assert (figures.hosts, figures.optimizer_steps, figures.samples) == (3, STEPS, 300)
    assert (figures.loss_first, figures.loss_last, figures.accuracy) == (2.0, 0.08, 0.95)
    assert (figures.redeploy_s, figures.redeploy_steps_lost, figures.redeploy_restarts) == (1.2, 0, 0)
    assert (figures.site_second_run_s, figures.site_second_run_changed) == (12.3, 0)
    assert broken_promises(figures, histories, 3) == []


def test_a_start_after_the_command_is_a_restart(histories):
    again = Entry(111.0, "ap-1", 0, Started(world=3, run="demo", revision="b", accum_steps=8, global_batch=BATCH))
    resumed = Entry(111.0, "ap-1", 0, Resumed(step=STEPS, source="own", lineage="x", epoch=0, position=300))
    figures = summary(replace(histories, entries=(*histories.entries, again, resumed)), seen())
    assert (figures.redeploy_restarts, figures.optimizer_steps) == (1, STEPS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"second": outcome(changed=1)}, "the second site.yml changed 3"),
        ({"receipts": 2}, "2 receipts of 3 hosts"),
    ],
)
def test_a_promise_that_was_not_kept_is_named(histories, changes, said):
    figures = summary(histories, seen(**changes))
    assert broken_promises(figures, histories, 3) == [said]


def test_a_host_that_did_not_train_is_missed(histories):
    two = replace(histories, entries=tuple(entry for entry in histories.entries if entry.host != "na-1"))
    broken = broken_promises(summary(two, seen()), two, 3)
    assert broken[0] == "2 of 3 hosts trained"
    assert any("EverySampleOnce" in sentence for sentence in broken)


def test_histories_without_a_change_give_no_figures(histories):
    with pytest.raises(BedError, match="25 steps, 3 evaluations, change None"):
        summary(histories, seen(redeploy=outcome(started=200.0)))
