"""`TrainState` lists everything that resume needs; nothing resumes that is not on it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from trainer.compute.randomness import RandomStream
from trainer.compute.scaler import LossScaler
from trainer.data.course import Progress
from trainer.errors import CheckpointError
from trainer.optim.average import Average
from trainer.optim.updater import Updater
from trainer.settings.inforce import InForce

FORMAT = 1


@dataclass(frozen=True)
class Best:
    """Evaluations so far: the best one, and how many since brought no new best."""

    loss: float | None = None
    step: int = 0
    since: int = 0

    def after(self, loss: float, step: int) -> Best:
        if not math.isnan(loss) and (self.loss is None or math.isnan(self.loss) or loss < self.loss):
            return Best(loss, step, 0)
        return Best(self.loss, self.step, self.since + 1)


@dataclass
class TrainState:
    """The few things that change while a run trains. Model and optimizer change in place, the rest are values.

    streams: process-wide generators by name (randomness.py). lineage: where the run was resumed, oldest first.
    incarnation: one random name that all ranks of this start share. ended: why the run is over, empty while it is not.
    data: what is trained on, wherever it lies; empty where nobody says.
    """

    model: nn.Module
    updater: Updater
    scaler: LossScaler
    inforce: InForce
    progress: Progress = field(default_factory=Progress)
    best: Best = field(default_factory=Best)
    average: Average | None = None
    streams: Mapping[str, RandomStream] = field(default_factory=dict)
    lineage: tuple[dict[str, Any], ...] = ()
    incarnation: str = ""
    ended: str = ""
    data: str = ""


@dataclass(frozen=True)
class Snapshot:
    """A state as it was at one moment, on the CPU. values: JSON."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    values: dict[str, Any]


def fingerprint(model: nn.Module) -> str:
    """12 hex digits of the names, shapes and types of all parameters and buffers: what must fit for a resume."""
    described = [(name, list(t.shape), str(t.dtype)) for name, t in model_tensors(model).items()]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:12]


def model_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name; what is shared stands once, under its first name."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if isinstance(tensor, Tensor) and id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor
    return found


def take_snapshot(state: TrainState, world: int, streams: list[dict[str, Any]] | None = None) -> Snapshot:
    """Copy `state`; training may go on at once. `streams`: of all replicas, by rank."""
    weights = {name: _copy(t) for name, t in model_tensors(state.model).items()}
    optimizer = {name: _copy(t) for name, t in state.updater.tensors().items()}
    if state.average is not None:
        optimizer |= {f"average:{name}": _copy(t) for name, t in state.average.tensors().items()}
    values = {
        "format": FORMAT,
        "progress": asdict(state.progress),
        "in_force": state.inforce.to_json(),
        "scaler": state.scaler.to_json(),
        "best": asdict(state.best),
        "updates": state.updater.updates.copy(),
        "streams": streams or [],
        "lineage": list(state.lineage),
        "incarnation": state.incarnation,
        "ended": state.ended,
        "data": state.data,
        "world": world,
        "revision": state.inforce.revision,
        "model": fingerprint(state.model),
        "tensors": {name: list(t.shape) for name, t in weights.items()},
    }
    return Snapshot(state.progress.step, weights, optimizer, values)


@torch.no_grad()
def restore(state: TrainState, snapshot: Snapshot, rank: int) -> None:
    """Put `snapshot` into `state`, whose model has the same parameters. Raises CheckpointError where it does not fit.

    Settings in force are as they were; the caller decides what became of the number of replicas. Moments of another
    kind of optimizer are left behind, and so is a loss scale where the precision asks for another.
    """
    check_fits(state.model, snapshot)
    desired = state.inforce.run
    for name, tensor in model_tensors(state.model).items():
        tensor.copy_(snapshot.model[name])
    moments = {name: t for name, t in snapshot.optimizer.items() if not name.startswith("average:")}
    if optimizer_kind(snapshot) != desired.optimizer.kind:
        moments = {}
    state.updater.load(moments, snapshot.values["updates"])
    if state.average is not None:
        prefix = len("average:")
        state.average.load({n[prefix:]: t for n, t in snapshot.optimizer.items() if n.startswith("average:")})
    state.progress = Progress(**snapshot.values["progress"])
    scaler = LossScaler(**snapshot.values["scaler"])
    state.scaler = scaler if scaler.active == state.scaler.active else state.scaler
    state.inforce = InForce.from_json(snapshot.values["in_force"])
    state.best = Best(**snapshot.values["best"])
    state.lineage = tuple(snapshot.values["lineage"])
    state.ended = ""
    streams = snapshot.values["streams"]
    for name, stream in state.streams.items():
        if streams:  # of another number of replicas: go on with one that is there
            stream.load_state_dict(streams[rank % len(streams)][name])


def optimizer_kind(snapshot: Snapshot) -> str:
    """What the moments in `snapshot` are of."""
    return str(snapshot.values["in_force"]["run"]["optimizer"]["kind"])


def check_fits(model: nn.Module, snapshot: Snapshot) -> None:
    """Refuse a checkpoint of another model, naming the first difference."""
    if snapshot.values["format"] != FORMAT:
        raise CheckpointError(
            f"checkpoint of step {snapshot.step}: format {snapshot.values['format']}, this gradferry reads {FORMAT}",
            "Use the version that wrote it, or start anew with an empty state folder",
        )
    mine = {name: list(t.shape) for name, t in model_tensors(model).items()}
    theirs = {name: list(t.shape) for name, t in snapshot.model.items()}
    for name in [*mine, *theirs]:
        if mine.get(name) != theirs.get(name):
            raise CheckpointError(
                f"checkpoint of step {snapshot.step} is of another model: {name} is {_seen(theirs.get(name))} there, "
                f"{_seen(mine.get(name))} in model.factory",
                "Use the model it was made with, or another state folder",
            )
    if snapshot.values["model"] != fingerprint(model):
        raise CheckpointError(
            f"checkpoint of step {snapshot.step} has parameters of another type than precision asks for",
            "Use the precision it was made with, or another state folder",
        )


def _seen(shape: list[int] | None) -> str:
    return "missing" if shape is None else f"of shape {shape}"


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True).contiguous()
