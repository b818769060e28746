"""One direction of an emulated path, without a kernel: time goes in, verdicts come out."""

from random import Random

import pytest

from tests.testbed.wan.link import ACCEPT, DROP, Link, Parameters, checked


def link(seed: int = 1, **changes: float | bool) -> Link:
    return Link("a>b", Parameters().with_changes(changes), Random(seed))


def drain(one: Link, until: float) -> list[tuple[float, int, int]]:
    """(time, packet id, verdict) of every batch, looking each 0.1 ms."""
    return [(step / 1e4, *batch) for step in range(int(until * 1e4)) for batch in one.due(step / 1e4)]


def test_a_packet_arrives_after_the_delay_and_not_before():
    one = link(delay_ms=75)
    one.offer(0.0, 1, 1500)
    assert one.due(0.0749) == []
    assert one.due(0.0751) == [(1, ACCEPT)]


def test_a_burst_leaves_at_the_rate_of_the_link():
    one = link(rate_mbit_s=12)  # 1500 bytes: 1 ms each
    for i in range(100):
        one.offer(0.0, i, 1500)
    batches = drain(one, 0.2)
    assert batches[-1][1] == 99
    assert batches[-1][0] == pytest.approx(0.1, abs=1e-3)
    assert max(i for t, i, _ in batches if t <= 0.05) + 1 == pytest.approx(50, abs=1)


def test_a_full_buffer_drops_what_comes_last():
    one = link(rate_mbit_s=12, buffer_ms=10)
    for i in range(100):
        one.offer(0.0, i, 1500)
    assert one.overflowed == 100 - 11
    assert drain(one, 0.1)[-1][1:] == (99, DROP)


def test_loss_is_close_to_what_was_asked_and_every_packet_gets_an_answer():
    one = link(loss_pct=2)
    for i in range(20000):
        one.offer(i * 1e-3, i, 100)
    assert 300 < one.lost < 500
    assert one.due(1e9)[-1][0] == 19999


def test_jitter_stays_in_its_range_and_never_reorders():
    one = link(delay_ms=50, jitter_ms=10)
    for i in range(100):
        one.offer(i * 0.1, i, 100)
    delays = [run[0] - i * 0.1 for i, run in enumerate(one.line)]
    assert min(delays) >= 0.04
    assert max(delays) <= 0.06
    assert max(delays) - min(delays) > 0.015
    assert [i for _, i, _ in drain(one, 11)] == list(range(100))


def test_blocking_drops_new_packets_and_lets_those_in_flight_arrive():
    one = link(delay_ms=10)
    one.offer(0.0, 1, 100)
    one.set(Parameters(delay_ms=10, blocked=True))
    one.offer(0.001, 2, 100)
    assert one.due(1.0) == [(1, ACCEPT), (2, DROP)]


def test_lateness_is_measured_so_that_a_slow_emulator_cannot_hide():
    one = link(delay_ms=10)
    one.offer(0.0, 1, 100)
    one.due(0.025)
    assert one.stats()["late_ms_max"] == pytest.approx(15.0)


@pytest.mark.parametrize(
    "bad",
    [{"delay": 1}, {"delay_ms": -1}, {"loss_pct": 101}, {"blocked": 1}, {"rate_mbit_s": "fast"}, {"delay_ms": True}],
)
def test_a_parameter_that_cannot_be_meant_is_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        checked(bad)
