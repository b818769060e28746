"""Checkpoints on a host: complete or not there, checked before they count, refused with the reason."""

import resource
import signal
import threading
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from trainer.checkpoint.keeper import Keeper
from trainer.checkpoint.manifest import FILES
from trainer.checkpoint.state import Best, TrainState, restore, take_snapshot
from trainer.checkpoint.store import CheckpointStore, Stored, load_snapshot
from trainer.checkpoint.transfer import choose, hand_out
from trainer.compute.scaler import LossScaler
from trainer.config import Optimizer, Run
from trainer.data.course import Progress
from trainer.errors import CheckpointError, ComeBack
from trainer.optim.updater import Updater
from trainer.settings.inforce import InForce
from trainer.sync.flat import FlatLayout
from trainer.sync.inprocess import Meeting
from trainer.sync.solo import SoloExchange


def state(seed=0, width=4, kind="adamw"):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.Linear(width, 1))
    updater = Updater(Optimizer(kind=kind), model)
    gradients = tuple(torch.randn_like(p) for p in model.parameters())
    updater.step(gradients, 0.1)
    inforce = InForce.at_start(Run(), 1, 100)
    return TrainState(model, updater, LossScaler(), inforce, Progress(step=7, position=40, windows=8))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


@pytest.fixture
def store(tmp_path):
    found = CheckpointStore(tmp_path / "checkpoints")
    found.sweep()
    return found


@pytest.mark.parametrize("kind", ["adamw", "sgd"])
def test_what_is_read_back_is_what_was_written_to_the_bit(store, kind):
    before, after = state(0, kind=kind), state(1, kind=kind)
    stored = store.write(take_snapshot(before, world=1))
    restore(after, load_snapshot(stored), rank=0)
    assert same(before.model, after.model)
    assert after.progress == before.progress
    mine, theirs = before.updater.tensors(), after.updater.tensors()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    next_step = tuple(torch.ones_like(p) for p in before.model.parameters())
    for one in (before, after):
        one.updater.step(next_step, 0.1)
    assert same(before.model, after.model)


def test_a_loss_scale_is_taken_over_only_where_the_precision_has_one(store):
    plain, scaled = state(), state()
    plain.scaler, scaled.scaler = LossScaler.off(), LossScaler(scale=8.0)
    without, with_scale = (take_snapshot(one, world=1) for one in (plain, scaled))
    restore(scaled, without, rank=0)
    restore(plain, with_scale, rank=0)
    assert (scaled.scaler, plain.scaler) == (LossScaler(scale=8.0), LossScaler.off())


def test_an_evaluation_that_is_not_a_number_is_never_the_best():
    best = Best().after(float("nan"), 2)
    assert (best.loss, best.since) == (None, 1)
    assert best.after(0.5, 4).after(float("nan"), 6) == Best(0.5, 4, 1)
    assert Best(float("nan"), 2).after(0.5, 4) == Best(0.5, 4)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_a_damaged_checkpoint_is_left_out_for_the_one_before(store, name, damage):
    one = state()
    store.write(take_snapshot(one, world=1))
    one.progress = Progress(step=9)
    path = store.write(take_snapshot(one, world=1)).folder / name
    data = bytearray(path.read_bytes())
    path.unlink()
    if damage != "remove":
        data[len(data) // 2] ^= 64
        path.write_bytes(data if damage == "flip" else data[: len(data) // 2])
    assert store.newest().step == 7
    assert any(isinstance(found, CheckpointError) for found in store.verified())


def test_a_checkpoint_of_another_model_is_refused_with_the_parameter(store):
    stored = store.write(take_snapshot(state(width=4), world=1))
    with pytest.raises(CheckpointError, match=r"0\.weight is of shape \[4, 3\] there, of shape \[5, 3\]"):
        restore(state(width=5), load_snapshot(stored), rank=0)


def test_only_the_newest_stay_and_the_best(store):
    one = state()
    for step in range(1, 7):
        one.progress = Progress(step=step)
        store.write(take_snapshot(one, world=1))
    store.keep(2, frozenset({3}))
    assert store.steps() == [6, 5, 3]


def test_damaged_ones_do_not_count_among_those_that_stay(store):
    one = state()
    for step in (1, 2, 3, 8, 9):
        one.progress = Progress(step=step)
        store.write(take_snapshot(one, world=1))
    (store.path(9) / "model.safetensors").unlink()
    altered = store.path(8) / "model.safetensors"
    altered.write_bytes(bytes(altered.stat().st_size))
    assert store.newest().step == 3
    store.keep(2)
    assert store.steps() == [9, 8, 3, 2]


def test_what_a_crash_left_half_written_is_swept_and_never_read(store):
    (store.folder / ".step-00000099.123").mkdir()
    assert store.newest() is None
    store.sweep()
    assert list(store.folder.iterdir()) == []


def test_a_checkpoint_that_cannot_be_written_is_told_and_nothing_is_raised(tmp_path):
    store = CheckpointStore(tmp_path / "checkpoints")
    store.folder.write_text("not a folder")
    keeper = Keeper(store, writes=True)
    keeper.save(state(), SoloExchange())
    keeper.wait()
    (written,) = keeper.finished()
    assert written.stored is None
    assert written.reason


def test_a_full_disk_leaves_no_half_of_a_checkpoint(store):
    snapshot = take_snapshot(state(width=512), world=1)
    with at_most(2000), pytest.raises(OSError):  # bytes of a file: a disk that is full in the middle of one
        store.write(snapshot)
    assert list(store.folder.iterdir()) == []


@contextmanager
def at_most(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_the_digest_is_the_same_on_every_host(tmp_path):
    digests = set()
    for name in ("a", "b"):
        one = CheckpointStore(tmp_path / name)
        digests.add(one.write(take_snapshot(state(), world=2)).digest)
    assert len(digests) == 1


def in_threads(world, work):
    """Run `work(exchange)` as `world` replicas; results by rank, exceptions as they are."""
    meeting, results = Meeting(world, 20.0), [None] * world
    layout = FlatLayout([torch.zeros(1)], [])

    def one(rank):
        try:
            results[rank] = work(meeting.seat(rank, layout))
        except Exception as error:
            results[rank] = error
            meeting.leave()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_the_newest_step_that_any_host_has_goes_to_those_without_it(tmp_path):
    stores = [CheckpointStore(tmp_path / str(rank)) for rank in range(4)]
    older, newer = state(), state()
    older.progress = Progress(step=5)
    stores[0].write(take_snapshot(older, world=4))
    stores[1].write(take_snapshot(newer, world=4))
    stores[2].write(take_snapshot(newer, world=4))

    def meet(exchange):
        store = stores[exchange.rank]
        choice = choose(store.newest(), exchange)
        return hand_out(choice, store, exchange, writes=True)

    results = in_threads(4, meet)
    assert [source for _, source in results] == [1, 1, 2, 2]
    assert {stored.step for stored, _ in results} == {7}
    assert len({store.newest().digest for store in stores}) == 1


def test_a_checkpoint_that_is_damaged_on_the_way_does_not_count(tmp_path, monkeypatch):
    stores = [CheckpointStore(tmp_path / str(rank)) for rank in range(2)]
    stores[0].write(take_snapshot(state(), world=2))

    def meet(exchange):
        real = exchange.receive
        exchange.receive = lambda data, source: (real(data, source), data.add_(1))
        store = stores[exchange.rank]
        return hand_out(choose(store.newest(), exchange), store, exchange, writes=True)

    results = in_threads(2, meet)
    assert isinstance(results[1], ComeBack)
    assert "damaged" in str(results[1])
    assert stores[1].newest() is None


def test_no_host_with_a_checkpoint_means_a_new_run(tmp_path):
    assert in_threads(2, lambda exchange: choose(None, exchange)) == [None, None]


def test_a_step_of_which_two_hosts_have_different_states_is_settled(tmp_path):
    stores = [CheckpointStore(tmp_path / str(rank)) for rank in range(2)]
    for rank, store in enumerate(stores):
        store.write(take_snapshot(state(seed=rank), world=2))

    def meet(exchange):
        store = stores[exchange.rank]
        return hand_out(choose(store.newest(), exchange), store, exchange, writes=True)

    assert all(isinstance(result[0], Stored) for result in in_threads(2, meet))
    assert stores[0].newest().digest == stores[1].newest().digest
