"""The loop on one replica: stops, intervals, memory that runs out, a disk that is full."""

from __future__ import annotations

import fcntl
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.unit.small_run import DropoutNet, Losses, equal, go, told
from trainer.config import Run
from trainer.drain import Drain
from trainer.errors import CheckpointError, ConfigError, DataError, ModelError, TrainingError
from trainer.records.checkers import EverySampleOnce
from trainer.records.history import read_histories
from trainer.records.verdict import Kept
from trainer.settings.inforce import InForce
from trainer.settings.live import AsTheyAre


class StopAfter(AsTheyAre):
    """Asks for a stop in the window number `windows`."""

    def __init__(self, drain: Drain, windows: int) -> None:
        self._drain, self._left = drain, windows

    def look(self, inforce: InForce, step: int) -> int:
        self._left -= 1
        if self._left == 0:
            self._drain.ask("SIGTERM")
        return 0


class EndsAt(DropoutNet):
    """Ends its process's work at a micro-batch, without a word."""

    def __init__(self, micro_batch: int) -> None:
        super().__init__()
        self._left = micro_batch

    def forward(self, batch: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().forward(batch)


ADAM = {"kind": "adamw", "lr": 0.01}


@pytest.mark.parametrize("stop", [1, 4, 5, 6, 13])
def test_a_run_that_was_stopped_and_one_that_was_not_are_equal_to_the_bit(tmp_path: Path, stop: int) -> None:
    whole = go(tmp_path / "whole", optimizer=ADAM)[1]
    drain = Drain()
    ending, _ = go(tmp_path / "parts", optimizer=ADAM, drain=drain, desired=StopAfter(drain, stop))
    assert ending.kind == "drained"
    resumed = go(tmp_path / "parts", optimizer=ADAM)[1]
    assert equal(whole.model, resumed.model)
    assert whole.progress == resumed.progress
    assert isinstance(EverySampleOnce().judge(read_histories(tmp_path / "parts")), Kept)


def test_a_run_killed_at_random_moments_is_equal_to_the_bit(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    settings: dict[str, Any] = {"optimizer": ADAM, "checkpoint": {"every_steps": 2}, "ema_decay": 0.9}
    whole = go(tmp_path / "whole", **settings)[1]
    for _ in range(10):
        with suppress(KeyboardInterrupt):  # one that comes late finds the run at its end
            go(tmp_path / "parts", model=EndsAt(chance.randrange(1, 20)), **settings)
    resumed = go(tmp_path / "parts", **settings)[1]
    assert equal(whole.model, resumed.model)
    averages = [state.average.tensors() for state in (whole, resumed) if state.average is not None]
    assert all(torch.equal(averages[0][name], averages[1][name]) for name in averages[0])
    assert isinstance(EverySampleOnce().judge(read_histories(tmp_path / "parts")), Kept)


def test_the_average_of_the_weights_is_what_is_evaluated_and_the_weights_stay(tmp_path: Path) -> None:
    from trainer.optim.average import Average

    model = DropoutNet()
    average = Average(model, 0.5)
    with torch.no_grad():
        model.b.bias.fill_(4.0)
    average.follow()
    before = model.b.bias.item()
    with average.in_place():
        inside = model.b.bias.item()
    assert (before, model.b.bias.item()) == (4.0, 4.0)
    assert inside != 4.0


def test_evaluations_without_a_new_best_end_the_run_and_the_best_checkpoint_stays(tmp_path: Path) -> None:
    ending, state = go(
        tmp_path,
        evaluator=Losses(0.9, 0.5, 0.7, 0.6),
        evaluate={"every_steps": 2, "patience": 2},
        checkpoint={"every_steps": 1, "keep": 1, "keep_best": True},
    )
    assert ending.kind == "stopped early"
    assert (state.progress.step, state.best.step, state.best.loss) == (8, 4, 0.5)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step-00000004", "step-00000008"]


def test_a_state_folder_that_another_process_uses_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    from trainer.run import train

    run = Run.model_validate({"data": {"path": str(tmp_path / "none")}})
    with (tmp_path / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match="another gradferry train uses it"):
            train(run, state=tmp_path, environment={})
    for _ in range(2):
        with pytest.raises(DataError):
            train(run, state=tmp_path, environment={})


def test_a_run_that_ended_early_is_over(tmp_path: Path) -> None:
    from trainer.checkpoint.store import CheckpointStore
    from trainer.resume import already_finished

    go(tmp_path, epochs=1)
    store = CheckpointStore(tmp_path / "checkpoints")
    assert already_finished(store, Run.model_validate({"epochs": 1})) == 5
    assert already_finished(store, Run.model_validate({"epochs": 2})) is None
    for other in ({"name": "other"}, {"seed": 18}, {"model": {"args": {"hidden": 8}}}):
        assert already_finished(store, Run.model_validate({"epochs": 1, **other})) is None


@pytest.mark.parametrize("field, was, now", [("name", "gradferry", "other"), ("seed", 17, 18)])
def test_a_checkpoint_of_another_run_is_refused_with_the_field(tmp_path: Path, field: str, was: Any, now: Any) -> None:
    go(tmp_path, epochs=1)
    with pytest.raises(CheckpointError, match=f"{field} was {was}, is now {now}"):
        go(tmp_path, epochs=2, **{field: now})


def test_a_checkpoint_of_other_data_is_refused_and_one_that_does_not_say_is_not(tmp_path: Path) -> None:
    go(tmp_path, epochs=1)
    go(tmp_path, epochs=2, data_is="digits, 50 samples")
    go(tmp_path, epochs=3, data_is="digits, 50 samples")
    with pytest.raises(CheckpointError, match="data was digits, 50 samples, is now digits, 51 samples"):
        go(tmp_path, epochs=4, data_is="digits, 51 samples")


def test_windows_that_are_not_finite_are_counted_and_end_the_run_in_the_end(tmp_path: Path) -> None:
    class Broken(DropoutNet):
        def forward(self, batch: Any) -> Any:
            scored = super().forward(batch)
            return scored._replace(loss_sum=scored.loss_sum * float("nan"))

    with pytest.raises(TrainingError, match="3 windows in a row is not finite"):
        go(tmp_path, model=Broken(), nonfinite={"stop_after": 3})
    assert [event["reason"] for event in told(tmp_path, "skipped")] == ["not finite"] * 3


class Cramped(DropoutNet):
    """Has no room for more than `most` samples at once, and says so after half of the work is done."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.norm = torch.nn.Identity()  # statistics of a piece are not those of the whole
        self._most = most

    def forward(self, batch: Any) -> Any:
        if batch["x"].shape[0] > self._most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")
        return super().forward(batch)

    def eval(self) -> Any:
        return super().eval()


@pytest.mark.parametrize("most, pieces", [(2, 2), (1, 4)])
def test_memory_that_runs_out_cuts_the_micro_batch_and_leaves_the_global_batch(
    tmp_path: Path, most: int, pieces: int
) -> None:
    _, state = go(tmp_path / "cramped", model=Cramped(most), epochs=1)
    _, roomy = go(tmp_path / "roomy", model=Cramped(4), epochs=1)
    assert [e["stop"] - e["start"] for e in told(tmp_path / "cramped", "step")] == [12, 12, 12, 12, 2]
    assert state.progress == roomy.progress
    assert {e["global_batch"] for e in told(tmp_path / "cramped", "step")} == {12}


def test_a_single_sample_that_does_not_fit_is_an_error_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="a single sample does not fit"):
        go(tmp_path, model=Cramped(0))


def test_what_a_model_raises_is_told_with_the_step_and_what_a_reader_says_stays(tmp_path: Path) -> None:
    class Raises(DropoutNet):
        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

        def forward(self, batch: Any) -> Any:
            raise self.error

    with pytest.raises(ModelError, match="^step 1: IndexError: Target 12 is out of bounds"):
        go(tmp_path / "labels", model=Raises(IndexError("Target 12 is out of bounds.\nmore")))
    with pytest.raises(DataError, match="damaged"):
        go(tmp_path / "data", model=Raises(DataError("damaged")))
    with pytest.raises(RuntimeError, match="ECC"):
        go(tmp_path / "device", model=Raises(RuntimeError("CUDA error: uncorrectable ECC error encountered")))


@pytest.mark.parametrize("before, now", [("adamw", "sgd"), ("sgd", "adamw")])
def test_another_kind_of_optimizer_begins_without_the_moments_of_the_one_before(
    tmp_path: Path, before: str, now: str
) -> None:
    go(tmp_path, epochs=1, optimizer={"kind": before, "momentum": 0.9})
    ending, state = go(tmp_path, epochs=2, optimizer={"kind": now, "momentum": 0.9})
    assert (ending.kind, state.progress.step) == ("finished", 10)
    names = {name.rpartition(".")[2] for name in state.updater.tensors()}
    assert names == ({"step", "exp_avg", "exp_avg_sq"} if now == "adamw" else {"momentum_buffer"})


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    go(tmp_path, epochs=1)
    other = DropoutNet()
    other.b = torch.nn.Linear(8, 2)
    with pytest.raises(CheckpointError, match=r"b\.weight"):
        go(tmp_path, model=other, epochs=2)


def test_a_run_whose_checkpoints_are_all_damaged_does_not_begin_again_over_them(tmp_path: Path) -> None:
    go(tmp_path, epochs=1, checkpoint={"every_steps": 2})
    folders = sorted((tmp_path / "checkpoints").iterdir())
    for folder in folders:
        (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="none of the checkpoints in .* is whole: .*cut short"):
        go(tmp_path, epochs=2)
    assert sorted((tmp_path / "checkpoints").iterdir()) == folders


def test_a_checkpoint_that_cannot_be_written_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainer.checkpoint import store

    def full(path: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_sync", full)
    ending, state = go(tmp_path, checkpoint={"every_steps": 2})
    assert ending.kind == "finished"
    assert state.progress.step == 20
    assert told(tmp_path, "checkpoint") == []
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_reduced_precision_trains_on_a_cpu_and_keeps_its_parameters_in_float32(tmp_path: Path, amp: str) -> None:
    _, state = go(tmp_path, amp=amp, optimizer={"kind": "sgd", "lr": 0.05})
    assert {p.dtype for p in state.model.parameters()} == {torch.float32}
    losses = [event["loss"] for event in told(tmp_path, "step")]
    assert losses[-1] < losses[0]
    assert state.progress.skipped <= 2  # sums of a window must not cost the scale more than means would
    assert state.scaler.active == (amp == "fp16")
