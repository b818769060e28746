"""Composition root: the only place where parts meet. `train` is the command, `conduct` what comes once all have met."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from trainer.batching import accum_steps, batch_text, check_relation
from trainer.checkpoint.keeper import Keeper
from trainer.checkpoint.state import TrainState
from trainer.checkpoint.store import CheckpointStore
from trainer.compute.amp import autocast, resolve, scaler_of
from trainer.compute.randomness import RandomStream
from trainer.compute.replica import Replica, statistics_of
from trainer.compute.scaler import LossScaler
from trainer.config import Run, load_run
from trainer.data.course import Course, EpochCourse
from trainer.data.dataset import open_dataset
from trainer.data.feed import Feed
from trainer.data.order import Order
from trainer.data.pack import ensure_packed
from trainer.drain import Drain
from trainer.errors import EXIT_COME_BACK, ComeBack, ConfigError, GradferryError
from trainer.evaluate import Evaluator, OnHeldOut
from trainer.launch import strategy_of
from trainer.loop import Ending, Rate, Work
from trainer.loop import train as train_loop
from trainer.metrics.lines import MetricLines
from trainer.metrics.memory import memory_meter
from trainer.metrics.prometheus import Endpoint
from trainer.metrics.window import WindowMeter
from trainer.optim.average import Average
from trainer.optim.updater import Updater
from trainer.parts import InPrecision, Samples, build_model, devices_of, dtype_of
from trainer.records import events
from trainer.records.history import History, history_path
from trainer.records.status import Status, StatusFile
from trainer.resume import agree, already_finished, start_or_resume
from trainer.settings.inforce import InForce
from trainer.settings.live import Acks, AsTheyAre, Desired, WatchedFile
from trainer.sync.exchange import Exchange
from trainer.sync.flat import FlatLayout
from trainer.sync.place import Place
from trainer.sync.solo import SoloExchange
from trainer.sync.watchdog import Watchdog
from trainer.watch import Sinks, Watch

WATCHDOG_DEADLINES = 3  # so many exchange deadlines without any movement end the process
EVALUATION_BATCH = 64


@dataclass(frozen=True)
class Setup:
    """What is trained, where it is kept, and how it is told.

    scaler: None for what `amp` asks for. sample_weight: about what one sample weighs (tokens of a row).
    data: what must be the same for a resume, wherever the samples lie.
    """

    run: Run
    host: str
    place: Place
    folder: Path
    model: nn.Module
    samples: Samples
    course: Course
    evaluator: Evaluator
    desired: Desired
    devices: tuple[torch.device, ...] = (torch.device("cpu"),)
    scaler: LossScaler | None = None
    streams: Mapping[str, RandomStream] = field(default_factory=dict)
    rate: Rate = InForce.rate
    sample_weight: float = 1.0
    data: str = ""


def train(
    run: Run,
    *,
    state: str | Path,
    host: str | None = None,
    source: str | Path | None = None,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    say: Callable[[str], None] = print,
) -> int:
    """Train `run` to its end, or until it is asked to stop; returns the exit status.

    `source` is the file that `run` was read from (with `overrides`); it is watched for new settings while training.
    0: finished, or this process itself was asked to stop. 75: come back (errors.ComeBack). Raises GradferryError.
    """
    place = Place.from_environment(os.environ if environment is None else environment)
    with _alone(Path(state), place):
        return _train(run, place, Path(state), host or socket.gethostname(), source, overrides, say)


def _train(
    run: Run,
    place: Place,
    folder: Path,
    host: str,
    source: str | Path | None,
    overrides: Sequence[str],
    say: Callable[[str], None],
) -> int:
    store = _open_store(folder, place)
    if (step := already_finished(store, run)) is not None:
        say(f"run {run.name} is finished: {step} optimizer steps, checkpoint in {store.path(step)}")
        return 0
    check_relation(run.accumulation, place.world)
    torch.set_num_threads(run.limits.threads)
    ensure_packed(run.data, say)
    file = None if source is None else Path(source)
    setup = _setup(run, place, host, folder, file, overrides)
    watchdog = Watchdog(f"{host} rank {place.rank}", WATCHDOG_DEADLINES * run.network.reduce_deadline_s)
    with History(history_path(folder, host, place.rank), host, place.rank) as history:
        watch = _watch(setup, history, watchdog, _described(file, host))
        return _report_ending(setup, watch, watchdog, say)


def _report_ending(setup: Setup, watch: Watch, watchdog: Watchdog, say: Callable[[str], None]) -> int:
    """Meet, train, leave. The last line of the history says how it ended."""
    try:
        watchdog.start()
        exchange = _meet(setup, watchdog)
        watch.drain.on_signals()
        say(f"{setup.host} rank {setup.place.rank}: {batch_text(setup.run.accumulation, setup.place.world)}")
        ending, _ = conduct(setup, exchange, watch)
        exchange.close()
        code = EXIT_COME_BACK if ending.kind == "drained" and not watch.drain.asked else 0
        watch.tell(events.Ended(reason=ending.kind, step=watch.status.step, code=code), state="ended")
        return code
    except GradferryError as error:
        watch.tell(events.Ended(reason=error.what, step=watch.status.step, code=error.exit_code), state="ended")
        raise
    finally:
        watchdog.stop()
        watch.close()


def conduct(setup: Setup, exchange: Exchange, watch: Watch) -> tuple[Ending, TrainState]:
    """Agree with the other replicas on where to start, and train; returns how it ended, and with what."""
    replica, state = build_state(setup)
    writes = setup.place.local_rank == 0
    store = CheckpointStore(setup.folder / "checkpoints")
    keeper = Keeper(store, writes=writes, beat=watch.beat)
    epoch_samples = setup.course.samples
    agreed = agree(setup.run, state, exchange, setup.host)
    state.incarnation = agreed.incarnation
    state.inforce = InForce.at_start(agreed.run, exchange.world, epoch_samples)
    resumed: list[events.Event] = []
    start_or_resume(
        state,
        store,
        exchange,
        writes=writes,
        epoch_samples=epoch_samples,
        tell=resumed.append,
        note=lambda text: watch.note({}, text),
        beat=watch.beat,
    )
    replica.spread()
    watch.tell(_started(state, epoch_samples), state="training")
    for event in resumed:
        watch.tell(event)
    feed = Feed(setup.samples, setup.course, exchange.rank, exchange.world, pin_memory=_on_gpu(setup))
    work = Work(setup.course, feed, replica, setup.evaluator, setup.desired, keeper, setup.rate, setup.sample_weight)
    try:
        return train_loop(state, work, exchange, watch), state
    except ComeBack:
        keeper.save_alone(state, exchange.world)
        watch.checkpoints(keeper.finished())
        raise
    finally:
        feed.close()
        keeper.wait()


def build_state(setup: Setup) -> tuple[Replica, TrainState]:
    """The model on its devices, and a state at step 0."""
    run = setup.run
    amp = resolve(run.amp, run.precision, setup.devices[0])
    model = setup.model.to(setup.devices[0]).train()
    replica = Replica(model, setup.devices, autocast(amp, setup.devices[0]))
    state = TrainState(
        model=model,
        updater=Updater(run.optimizer, model),
        scaler=setup.scaler or scaler_of(amp),
        inforce=InForce.at_start(run, setup.place.world, setup.course.samples),
        average=Average(model, run.ema_decay) if run.ema_decay is not None else None,
        streams=setup.streams,
        data=setup.data,
    )
    return replica, state


def _setup(run: Run, place: Place, host: str, folder: Path, source: Path | None, overrides: Sequence[str]) -> Setup:
    """Everything that can be wrong on this host is found here, before the other hosts are met."""
    dataset = open_dataset(run.data.path)
    if len(dataset) == 0:
        raise ConfigError(f"data.path = {run.data.path}: there is no sample in it", "Pack data that has some")
    samples, held_out = InPrecision(dataset, dtype_of(run)), InPrecision(dataset.held_out, dtype_of(run))
    model, sample_weight = build_model(run, samples.batch([0]))
    return Setup(
        run=run,
        host=host,
        place=place,
        folder=folder,
        model=model,
        samples=samples,
        course=EpochCourse(Order(run.seed, len(dataset)), run.epochs),
        evaluator=OnHeldOut(held_out, EVALUATION_BATCH),
        desired=_desired(folder, source, overrides, place),
        devices=devices_of(run, place),
        sample_weight=sample_weight,
        data=f"{dataset.index.kind}, {len(dataset)} samples",
    )


def _desired(folder: Path, source: Path | None, overrides: Sequence[str], place: Place) -> Desired:
    if source is None:
        return AsTheyAre()
    acks = Acks(folder / "acks") if place.local_rank == 0 else None
    return WatchedFile(source, lambda: load_run(source, overrides), place.world, acks)


def _meet(setup: Setup, watchdog: Watchdog) -> Exchange:
    """The exchange of the run's strategy, once all replicas are there."""
    if strategy_of(setup.run, setup.place.world) != "ddp" or setup.place.world == 1:
        return SoloExchange()
    from trainer.sync import rendezvous
    from trainer.sync.ddp import DdpExchange

    network = setup.run.network
    gpu = _on_gpu(setup)
    watchdog.beat(allow_s=network.rendezvous_s)
    rendezvous.meet(setup.place, rendezvous_s=network.rendezvous_s, deadline_s=network.reduce_deadline_s, gpu=gpu)
    watchdog.beat()
    return DdpExchange(layout_of(setup.model.to(setup.devices[0])), f"{setup.host} rank {setup.place.rank}")


def layout_of(model: nn.Module) -> FlatLayout:
    """How the contributions of `model` travel."""
    return FlatLayout([p for p in model.parameters() if p.requires_grad], statistics_of(model))


def _watch(setup: Setup, history: History, watchdog: Watchdog, described: Mapping[str, str]) -> Watch:
    place, name = setup.place, f"{setup.host}-{setup.place.rank}"
    status = Status(
        host=setup.host, rank=place.rank, t=time.time(), region=described.get("region", ""), state="waiting"
    )
    file = StatusFile(setup.folder, setup.host, place.rank)
    file.write(status, now=True)
    port = setup.run.metrics.port
    endpoint = None
    if port is not None:
        address = described.get("mesh_address", "127.0.0.1")
        endpoint = Endpoint(address, port + place.local_rank, {"host": setup.host, "rank": str(place.rank)})
    lines = MetricLines(setup.folder / "metrics" / f"{name}.jsonl")
    meter = WindowMeter(memory_meter(tuple(str(device) for device in setup.devices)))
    return Watch(Sinks(history, file, lines, endpoint, watchdog), meter, Drain(), status)


def _started(state: TrainState, epoch_samples: int) -> events.Started:
    inforce = state.inforce
    return events.Started(
        world=inforce.replicas,
        run=inforce.run.name,
        revision=inforce.revision,
        accum_steps=accum_steps(inforce.run.accumulation, inforce.replicas),
        global_batch=inforce.global_batch,
        samples=epoch_samples,
        incarnation=state.incarnation,
    )


@contextmanager
def _alone(folder: Path, place: Place) -> Iterator[None]:
    """Hold `folder` for this host's processes; the kernel lets it go with the process, however that ends."""
    if place.local_rank != 0:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise _not_writable(folder, error) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"state folder {folder}: another gradferry train uses it",
                "Wait for it or stop it, or give another --state",
            ) from None
        except OSError:  # a file system without locks
            pass
        yield


def _not_writable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(f"state folder {folder}: {error.strerror}", "Give a folder that you may write to")


def _open_store(folder: Path, place: Place) -> CheckpointStore:
    store = CheckpointStore(folder / "checkpoints")
    try:
        if place.local_rank == 0:
            store.sweep()
    except OSError as error:
        raise _not_writable(folder, error) from None
    return store


def _described(path: Path | None, host: str) -> dict[str, str]:
    """What run.json says about this host; nothing where the run file is a user's run.yml."""
    if path is None:
        return {}
    try:
        hosts = json.loads(path.read_text(encoding="utf-8"))["hosts"]
        return next({k: str(v) for k, v in h.items()} for h in hosts if h["name"] == host)
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return {}


def _on_gpu(setup: Setup) -> bool:
    return setup.devices[0].type == "cuda"
