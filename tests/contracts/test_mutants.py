"""Known mistakes, put into the trainer's real parts one at a time: for each there is a case that fails.

`no_sync` forgotten for a forward pass cannot be put in: there is no DistributedDataParallel (docs/adr/0010). What it
leads to can: an exchange at every micro-batch, or of one micro-batch only.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import trainer.accumulate
import trainer.loop
import trainer.resume
from tests.contracts.adapter.case import disagreements
from trainer.accumulate import Contribution, Tally
from trainer.compute.scaler import LossScaler
from trainer.data.course import EpochCourse
from trainer.models.scored import Scored
from trainer.optim.schedules import Position
from trainer.optim.updater import Updater
from trainer.sync.exchange import Header
from trainer.sync.flat import FlatLayout
from trainer.update import Outcome

HERE = Path(__file__).parent
Patch = pytest.MonkeyPatch
MUTANTS: list[tuple[str, Callable[[Patch], None]]] = []


def caught_by(*cases: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """The mutation below must make each of `cases` fail."""

    def note(mutate: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS.extend((case, mutate) for case in cases)
        return mutate

    return note


@pytest.mark.parametrize("case, mutate", MUTANTS, ids=[f"{m.__name__}-{c}" for c, m in MUTANTS])
def test_the_mistake_is_caught(case: str, mutate: Callable[[Patch], None], monkeypatch: Patch, tmp_path: Path) -> None:
    path = next(path for folder in ("cases", "more") for path in (HERE / folder).glob(f"{case}-*.json"))
    given = json.loads(path.read_text())
    assert disagreements(given, tmp_path / "right", "threads") == []
    mutate(monkeypatch)
    assert disagreements(given, tmp_path / "wrong", "threads") != []


@caught_by("01", "37", "62")
def mean_of_means(patch: Patch) -> None:
    def mean(scored: Scored) -> Scored:
        return Scored(scored.loss_sum / scored.weight.clamp(min=1), torch.ones(()), None)

    backward, add = trainer.accumulate.backward, Tally.add
    patch.setattr(trainer.accumulate, "backward", lambda scored, scale: backward(mean(scored), scale))
    patch.setattr(Tally, "add", lambda self, scored: add(self, mean(scored)))


@caught_by("05", "19")
def double_division(patch: Patch) -> None:
    real = trainer.loop.coefficient
    patch.setattr(trainer.loop, "coefficient", lambda weight, norm, limit: real(weight, norm, limit) / 2)


@caught_by("01", "19")
def sum_not_mean(patch: Patch) -> None:
    real = trainer.loop.coefficient
    patch.setattr(trainer.loop, "coefficient", lambda weight, norm, limit: real(weight, norm, limit) * weight)


@caught_by("08", "09")
def schedule_per_micro_batch(patch: Patch) -> None:
    patch.setattr(trainer.loop, "Position", lambda step, samples, window: Position(2 * step, samples, window))


@caught_by("13", "37")
def schedule_step_on_a_skip(patch: Patch) -> None:
    def moved(state: Any, outcome: Outcome) -> Outcome:
        state.progress = replace(state.progress, step=state.progress.step + 1)
        return outcome

    patch.setattr(trainer.loop, "skip", moved)


@caught_by("12")
def clip_before_unscale(patch: Patch) -> None:
    real = trainer.loop.coefficient
    patch.setattr(trainer.accumulate, "unscale", lambda gradients, scale: None)
    patch.setattr(trainer.loop, "coefficient", lambda weight, norm, limit: real(weight, norm, limit) / 1024)


@caught_by("12")
def unscale_per_micro_batch(patch: Patch) -> None:
    def accumulate(replica: Any, batches: Iterable[Any], scale: float) -> Contribution:
        tally, samples = Tally(replica.devices[0]), 0
        for batch in batches:
            scored = replica.forward(replica.model, batch)
            (scored.loss_sum * scale).backward()
            trainer.accumulate.unscale(tuple(p.grad for p in replica.parameters), scale)
            tally.add(scored)
            samples += trainer.accumulate.samples_of(batch)
        return trainer.accumulate.contribution(replica.take_gradients(), (), tally, samples)

    patch.setattr(trainer.loop, "accumulate", accumulate)


@caught_by("13")
def scaler_counts_micro_batches(patch: Patch) -> None:
    real = LossScaler.after_step

    def thrice(scaler: LossScaler) -> LossScaler:
        return real(real(real(scaler)))

    patch.setattr(LossScaler, "after_step", thrice)


@caught_by("13", "35")
def step_although_not_finite(patch: Patch) -> None:
    def judge(total: Any) -> Outcome:
        return Outcome(grad_norm=total.headers[0].norm / total.weight)

    patch.setattr(trainer.loop, "judge", judge)


@caught_by("16")
def clip_local_gradients(patch: Patch) -> None:
    real = trainer.loop.accumulate

    def clipped(replica: Any, batches: Iterable[Any], scale: float) -> Contribution:
        mine = real(replica, batches, scale)
        factor = min(1.0, 0.4 / (mine.norm / mine.weight))
        return replace(mine, gradients=tuple(None if g is None else g * factor for g in mine.gradients))

    patch.setattr(trainer.loop, "accumulate", clipped)


class _Exchanges(threading.local):
    """The exchange of the replica whose thread asks."""

    now: Any = None


def _capture(patch: Patch) -> _Exchanges:
    captured, real = _Exchanges(), trainer.loop.next_window

    def next_window(state: Any, work: Any, exchange: Any) -> Any:
        captured.now = exchange
        return real(state, work, exchange)

    patch.setattr(trainer.loop, "next_window", next_window)
    return captured


def _added(parts: list[Contribution]) -> Contribution:
    columns = zip(*(part.gradients for part in parts), strict=True)
    gradients = tuple(sum(g for g in column if g is not None) for column in columns)
    norm = float(trainer.accumulate.norm_of(gradients) or 0.0)
    loss_sum, weight = sum(p.loss_sum for p in parts), sum(p.weight for p in parts)
    return Contribution(gradients, (), loss_sum, weight, None, sum(p.samples for p in parts), norm)


@caught_by("17")
def exchange_at_every_micro_batch(patch: Patch) -> None:
    captured, real = _capture(patch), trainer.loop.accumulate

    def accumulate(replica: Any, batches: Iterable[Any], scale: float) -> Contribution:
        parts = [real(replica, [batch], scale) for batch in batches]
        for part in parts[:-1]:
            captured.now.sum(part, Header.of(part))
        return _added(parts)

    patch.setattr(trainer.loop, "accumulate", accumulate)


@caught_by("18")
def exchange_the_first_micro_batch_only(patch: Patch) -> None:
    kept, real, apply = threading.local(), trainer.loop.accumulate, trainer.loop.apply

    def accumulate(replica: Any, batches: Iterable[Any], scale: float) -> Contribution:
        first, *rest = [real(replica, [batch], scale) for batch in batches]
        kept.rest = _added(rest).gradients
        return first

    def with_rest(state: Any, work: Any, window: Any, total: Any) -> Outcome:
        gradients = tuple(a + b for a, b in zip(total.gradients, kept.rest, strict=True))
        return apply(state, work, window, replace(total, gradients=gradients))

    patch.setattr(trainer.loop, "accumulate", accumulate)
    patch.setattr(trainer.loop, "apply", with_rest)


@caught_by("70")
def last_window_dropped(patch: Patch) -> None:
    real = EpochCourse.next

    def whole_ones(self: EpochCourse, at: Any, accumulation: Any, replicas: int) -> Any:
        window = real(self, at, accumulation, replicas)
        return window if window is not None and window.samples == accumulation.global_batch else None

    patch.setattr(EpochCourse, "next", whole_ones)


@caught_by("25")
def zero_instead_of_none(patch: Patch) -> None:
    patch.setattr(FlatLayout, "gradients", lambda self, vector: tuple(self._views(vector)[: self._parameters]))


@caught_by("30")
def log_the_last_micro_batch(patch: Patch) -> None:
    def last(self: Tally, scored: Scored) -> None:
        self.loss_sum, self.weight = scored.loss_sum.detach().double(), scored.weight.double()

    patch.setattr(Tally, "add", last)


@caught_by("39")
def log_the_norm_after_clipping(patch: Patch) -> None:
    real = trainer.loop.apply

    def apply(*arguments: Any) -> Outcome:
        outcome = real(*arguments)
        return replace(outcome, grad_norm=outcome.clipped_norm)

    patch.setattr(trainer.loop, "apply", apply)


@caught_by("10")
def optimizer_state_not_restored(patch: Patch) -> None:
    patch.setattr(Updater, "load", lambda self, tensors, updates: None)


@caught_by("10", "22", "33", "67")
def resumed_from_nothing(patch: Patch) -> None:
    patch.setattr(trainer.resume, "choose", lambda mine, exchange: None)


@caught_by("22")
def random_stream_not_restored(patch: Patch) -> None:
    from tests.contracts.adapter.models import Stream

    patch.setattr(Stream, "load_state_dict", lambda self, state: None)


@caught_by("61")
def sum_in_compute_dtype(patch: Patch) -> None:
    real = trainer.accumulate.backward

    def rounding(scored: Scored, scale: float) -> None:
        real(scored, scale)
        for node, _ in _leaves(scored.loss_sum.grad_fn):
            node.grad.copy_(node.grad.to(torch.bfloat16))

    patch.setattr(trainer.accumulate, "backward", rounding)


def _leaves(node: Any) -> Iterable[tuple[Any, Any]]:
    if hasattr(node, "variable"):
        yield node.variable, None
    for inner, _ in getattr(node, "next_functions", ()):
        if inner is not None:
            yield from _leaves(inner)


@caught_by("65")
def average_moves_on_a_skip(patch: Patch) -> None:
    def skip(state: Any, outcome: Outcome) -> Outcome:
        state.progress = replace(state.progress, skipped=state.progress.skipped + 1)
        state.average.follow()
        return outcome

    patch.setattr(trainer.loop, "skip", skip)
