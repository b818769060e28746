"""What was started is taken away however it is stopped."""

import signal

import pytest

from tests.testbed.interrupts import STOPPING, stop_on_signals, undisturbed


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPPING)
def test_both_signals_stop_even_where_a_shell_had_them_ignored(number):
    signal.signal(number, signal.SIG_IGN)
    stop_on_signals()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_a_clean_up_is_finished_before_the_signal_counts():
    stop_on_signals()
    done = []
    with pytest.raises(KeyboardInterrupt), undisturbed():
        signal.raise_signal(signal.SIGTERM)
        done.append("cleaned up")
    assert done == ["cleaned up"]
