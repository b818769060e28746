"""The loader: in order, bounded, and loud when a read fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from trainer.data.loader import Loader
from trainer.errors import DataError


class Memory:
    """Samples that are their own numbers; notes what was read, and can be told to fail or to wait."""

    def __init__(self, fails_at: int | None = None, gate: threading.Event | None = None) -> None:
        self.read: list[tuple[int, ...]] = []
        self._fails_at, self._gate = fails_at, gate

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]:
        if self._gate is not None:
            assert self._gate.wait(10)
        if self._fails_at in ids:
            raise OSError("disk is gone")
        self.read.append(tuple(ids))
        return {"x": torch.tensor(list(ids))}


def loaders() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("gradferry-loader")]


@given(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=12), st.integers(0, 5))
def test_batches_come_in_the_order_asked_for(asked: list[list[int]], ahead: int) -> None:
    with Loader(Memory(), asked, ahead=ahead) as loader:
        got = [(list(f.ids), f.batch["x"].tolist()) for f in loader]
    assert got == [(ids, ids) for ids in asked]


@given(st.integers(0, 10), st.integers(0, 4))
def test_nothing_is_read_further_ahead_than_was_allowed(taken: int, ahead: int) -> None:
    memory, given_out = Memory(), []

    def asked():  # type: ignore[no-untyped-def]
        for n in range(50):
            given_out.append(n)
            yield (n,)

    loader = Loader(memory, asked(), ahead=ahead)
    for _ in range(taken):
        next(loader)
    loader.close()
    assert len(given_out) == (taken + ahead if taken else 0)
    assert len(memory.read) <= len(given_out)


def test_a_read_that_fails_stops_the_run_with_the_cause_at_its_place() -> None:
    loader = Loader(Memory(fails_at=2), [(0,), (1,), (2,), (3,)])
    assert [next(loader).ids, next(loader).ids] == [(0,), (1,)]
    with pytest.raises(DataError, match=r"reading samples 2 failed: OSError: disk is gone"):
        next(loader)
    assert not loaders()


def test_waiting_for_data_is_measured() -> None:
    gate = threading.Event()
    times = iter([0.0, 1.5, 10.0, 10.0])
    loader = Loader(Memory(gate=gate), [(0,), (1,)], clock=lambda: (gate.set(), next(times))[1])
    assert [f.wait_s for f in loader] == [1.5, 0.0]
    assert loader.wait_s == 1.5


def test_closing_early_leaves_no_thread_behind() -> None:
    with Loader(Memory(), [(n,) for n in range(100)]) as loader:
        next(loader)
        assert loaders()
    assert not loaders()
    loader.close()
    with pytest.raises(StopIteration):
        next(loader)
