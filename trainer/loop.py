"""The training loop of one replica. What it needs comes in as arguments; what it changes is on `state`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import torch

from trainer.accumulate import Contribution, accumulate
from trainer.batching import Window
from trainer.checkpoint.keeper import Keeper
from trainer.checkpoint.state import TrainState
from trainer.compute.randomness import begin_window
from trainer.compute.replica import Replica
from trainer.data.course import Course
from trainer.data.feed import Feed
from trainer.data.loader import Fetched
from trainer.errors import GradferryError, ModelError, TrainingError
from trainer.evaluate import Evaluator
from trainer.models.scored import Batch
from trainer.optim.schedules import Position
from trainer.records.events import read_digest
from trainer.settings.inforce import InForce
from trainer.settings.live import Desired
from trainer.sync.exchange import Exchange, Header, Total
from trainer.update import Outcome, coefficient, judge, scale_
from trainer.watch import Span, Watch

Rate = Callable[[InForce, Position], float]


@dataclass
class Work:
    """What is trained on what: the parts that do not change, but for `pieces`.

    sample_weight: about what one sample weighs (tokens of a row).
    pieces: into how many parts each micro-batch is cut because the whole did not fit into memory.
    """

    course: Course
    feed: Feed
    replica: Replica
    evaluator: Evaluator
    desired: Desired
    keeper: Keeper
    rate: Rate = InForce.rate
    sample_weight: float = 1.0
    pieces: int = 1


@dataclass(frozen=True)
class Ending:
    """Why training ended."""

    kind: Literal["finished", "stopped early", "drained"]


def train(state: TrainState, work: Work, exchange: Exchange, watch: Watch) -> Ending:
    """Train until `work` is used up or a replica is asked to stop; say why it ended.

    `state` may be new, resumed, or a neighbour's: the loop cannot tell. Raises only what errors.py names.
    """
    while (window := next_window(state, work, exchange)) is not None:
        watch.begin()
        begin_window(state.inforce.run.seed, state.progress.windows, exchange.rank)
        mine, read = contribute(state, work, window, watch)  # sums over what is scored, and their weight
        candidate = work.desired.look(state.inforce, state.progress.step)
        note = Header.of(mine, stop=watch.drain.asked, candidate=candidate, read=read_digest(read))
        total = exchange.sum(mine, note)  # the one exchange of the window
        scale = state.scaler.scale
        outcome = apply(state, work, window, total)  # one division, one clip, one step; or a skip, the same everywhere
        watch.window(state, window, read, scale, total, outcome)
        give_up_on_nonsense(state)
        if total.candidate:
            take_up(state, work, exchange, watch, total.candidate)
        if not outcome.skipped and enough(state, work, exchange, watch):
            return end(state, work, exchange, watch, Ending("stopped early"))
        watch.checkpoints(work.keeper.finished())
        if total.stop:
            return end(state, work, exchange, watch, Ending("drained"))
    return end(state, work, exchange, watch, Ending("finished"))


def next_window(state: TrainState, work: Work, exchange: Exchange) -> Window | None:
    """What all replicas train on next; None at the end of the run."""
    limit = state.inforce.run.max_steps
    if limit is not None and state.progress.step >= limit:
        return None
    return work.course.next(state.progress, state.inforce.run.accumulation, exchange.world)


def contribute(state: TrainState, work: Work, window: Window, watch: Watch) -> tuple[Contribution, tuple[Span, ...]]:
    """Our share of `window`, and the positions that it is. Where memory runs out, again in smaller pieces."""
    accumulation = state.inforce.run.accumulation
    share = work.course.share(window, accumulation, state.inforce.replicas, work.feed.replica)
    read = tuple((positions.start, positions.stop) for positions in share)
    fetched = work.feed.window(window, state.progress, accumulation)
    while True:
        try:
            batches = pieces(fetched, work.pieces, watch)
            return accumulate(work.replica, batches, loss_scale(state, work)), read
        except torch.OutOfMemoryError as error:
            longest = max((len(positions) for positions in share), default=1)
            if work.pieces >= longest:
                raise TrainingError(
                    f"a single sample does not fit into memory: {str(error).splitlines()[0][:160]}",
                    "Use a smaller model or sample, or a larger device",
                ) from None
            work.pieces *= 2
            work.replica.take_gradients()
            watch.note(
                {"step": state.progress.step, "pieces": work.pieces}, f"out of memory: 1/{work.pieces} at a time"
            )
            begin_window(state.inforce.run.seed, state.progress.windows, work.feed.replica)
            fetched = work.feed.again(window, accumulation)
        except (GradferryError, OSError):  # of the reader
            raise
        except Exception as error:
            if failed_device(error):
                raise
            raise ModelError(
                f"step {state.progress.step + 1}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}",
                "model.factory fails on these samples: do its arguments (classes, vocabulary, lengths) fit the data?",
            ) from error


def failed_device(error: Exception) -> bool:
    """A GPU's own failure, which a new start may cure; an index out of bounds on it is the model's."""
    return "CUDA error" in str(error) and "device-side assert" not in str(error)


def loss_scale(state: TrainState, work: Work) -> float:
    """What losses are multiplied with. fp16: the scaler's scale for a mean loss, so divided by the window's nominal
    weight, lest a sum over thousands of tokens overflow; to a power of two, which leaves no trace."""
    if not state.scaler.active:
        return 1.0
    nominal = work.sample_weight * state.inforce.global_batch
    return float(state.scaler.scale * 2.0 ** -math.ceil(math.log2(max(1.0, nominal))))


def pieces(fetched: Iterator[Fetched], count: int, watch: Watch) -> Iterator[Batch]:
    """Micro-batches as they come, each in up to `count` pieces."""
    for one in fetched:
        watch.waited(one.wait_s)
        watch.beat()
        size = -(-len(one.ids) // count)
        for start in range(0, len(one.ids), size):
            yield one.batch if count == 1 else {k: v[start : start + size] for k, v in one.batch.items()}


@torch.no_grad()
def apply(state: TrainState, work: Work, window: Window, total: Total) -> Outcome:
    """One division, one clip, one step, one position of the schedule. A skipped window moves none of them."""
    outcome = judge(total)
    at = Position(state.progress.step, state.progress.samples, window.samples)
    state.progress = state.progress.after(window)
    for buffer, mean in zip(work.replica.statistics, total.buffers, strict=False):
        if buffer is not mean:
            buffer.copy_(mean if buffer.is_floating_point() else mean.round())
    if outcome.skipped:
        return skip(state, outcome)
    lr = work.rate(state.inforce, at)
    limit = state.inforce.run.clip_grad_norm
    factor = coefficient(total.weight, outcome.grad_norm, limit)
    scale_(total.gradients, factor)
    state.updater.step(total.gradients, lr)
    work.replica.spread()
    if state.average is not None:
        state.average.follow()
    state.scaler = state.scaler.after_step()
    now = state.progress
    state.progress = replace(now, step=now.step + 1, samples=now.samples + window.samples, nonfinite_in_a_row=0)
    return replace(outcome, lr=lr, clipped_norm=outcome.grad_norm * factor * total.weight)


def skip(state: TrainState, outcome: Outcome) -> Outcome:
    """No update, no schedule step, no moments; the loss scale goes down where the gradient was not finite."""
    nonfinite = outcome.skipped == "not finite"
    if nonfinite:
        state.scaler = state.scaler.after_overflow()
    row = state.progress.nonfinite_in_a_row + nonfinite
    state.progress = replace(state.progress, skipped=state.progress.skipped + 1, nonfinite_in_a_row=row)
    return outcome


def give_up_on_nonsense(state: TrainState) -> None:
    """Raises TrainingError when too many windows in a row had a gradient that is not finite."""
    row, bound = state.progress.nonfinite_in_a_row, state.inforce.run.nonfinite.stop_after
    if row >= bound:
        raise TrainingError(
            f"step {state.progress.step}: the gradient of {row} windows in a row is not finite "
            f"(nonfinite.stop_after = {bound}); the last checkpoint is from before",
            "Lower optimizer.lr, clip_grad_norm, or look at the samples named in the history's `skipped` events",
        )


def take_up(state: TrainState, work: Work, exchange: Exchange, watch: Watch, revision: int) -> None:
    """All replicas hold the same new settings: they are in force from the next window."""
    before = state.inforce
    run = work.desired.take(revision)
    state.inforce = before.changed(run, exchange.world, work.course.samples, state.progress)
    watch.settings(before, state.inforce, state.progress.step)
    work.desired.in_force(state.inforce, state.progress.step)


def enough(state: TrainState, work: Work, exchange: Exchange, watch: Watch) -> bool:
    """Evaluate and write a checkpoint where the step says so. True when the run has stopped getting better."""
    step, run = state.progress.step, state.inforce.run
    better = False
    if step % run.evaluate.every_steps == 0 and (found := work.evaluator(state, work.replica, exchange)) is not None:
        state.best = state.best.after(found.loss, step)
        better = state.best.step == step
        watch.evaluated(step, found)
    if step % run.checkpoint.every_steps == 0 or (better and run.checkpoint.keep_best):
        work.keeper.save(state, exchange)
    patience = run.evaluate.patience
    return patience is not None and state.best.since >= patience


def end(state: TrainState, work: Work, exchange: Exchange, watch: Watch, ending: Ending) -> Ending:
    """The last evaluation and the last checkpoint, complete on every host before anybody leaves."""
    if ending.kind != "drained":
        state.ended = ending.kind
        if state.progress.step % state.inforce.run.evaluate.every_steps:
            found = work.evaluator(state, work.replica, exchange)
            if found is not None:
                watch.evaluated(state.progress.step, found)
    work.keeper.save(state, exchange)
    work.keeper.wait()
    watch.checkpoints(work.keeper.finished())
    exchange.gather(b"written")
    return ending
