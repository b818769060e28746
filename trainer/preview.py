"""What a run file comes to before anything runs: the virtual batch, steps, rate, data and model, in words."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from trainer.batching import accum_steps, check_relation, global_batch, lr_scale
from trainer.config import Run, fields
from trainer.data.index import INDEX, read_index


def preview(run: Run, replicas: int) -> list[str]:
    """Lines for a person. Raises ConfigError, DataError or ModelError for what would stop the run at its start."""
    check_relation(run.accumulation, replicas)
    samples, data = _data(run)
    return [
        f"run        {run.name}, {replicas} {'replica' if replicas == 1 else 'replicas'}, seed {run.seed}",
        f"batch      {_batch(run, replicas)}",
        f"steps      {_steps(run, replicas, samples)}",
        f"rate       {_rate(run, replicas)}",
        f"data       {data}",
        f"model      {_model(run, samples is not None)}",
    ]


def resolved(run: Run) -> list[str]:
    """Every field with its value; a star marks those that are not the default."""
    default = fields(Run())
    return [
        f"{'*' if value != default.get(name) else ' '} {name} = {json.dumps(value)}"
        for name, value in fields(run).items()
    ]


def _batch(run: Run, replicas: int) -> str:
    settings = run.accumulation
    batch, steps = global_batch(settings, replicas), accum_steps(settings, replicas)
    product = settings.micro_batch * steps * replicas
    dealt = "" if product == batch else f" ({product} places, {batch} of them filled)"
    return (
        f"micro_batch {settings.micro_batch} × accum_steps {steps} × replicas {replicas} = {product}{dealt}: "
        f"global batch {batch} samples a step"
    )


def _steps(run: Run, replicas: int, samples: int | None) -> str:
    bound = f", at most {run.max_steps}" if run.max_steps else ""
    if samples is None:
        return f"{run.epochs} epochs{bound}; how many steps is known once the data is packed"
    an_epoch = -(-samples // global_batch(run.accumulation, replicas))
    total = min(an_epoch * run.epochs, run.max_steps or an_epoch * run.epochs)
    return f"{an_epoch} in an epoch of {samples} samples, {run.epochs} epochs{bound}: {total} optimizer steps"


def _rate(run: Run, replicas: int) -> str:
    rate, scaling = run.optimizer.lr, run.lr_scaling
    batch = global_batch(run.accumulation, replicas)
    base = scaling.base_batch or batch
    factor = lr_scale(scaling.rule, batch, base)
    scaled = f"lr {rate:g} for batch {base} × {factor:g} ({scaling.rule}: {batch}/{base}) = {rate * factor:g}"
    return f"{scaled}, {run.schedule.kind}"


def _data(run: Run) -> tuple[int | None, str]:
    """Samples of an epoch where they are known, and what the data is."""
    folder = Path(run.data.path)
    if run.data.pack is not None and not (folder / INDEX).exists():
        return None, f"{folder}: not there yet, `gradferry train` packs {run.data.pack} first"
    index = read_index(folder)
    return index.splits["train"].samples, f"{folder}: {index.describe()}"


def _model(run: Run, packed: bool) -> str:
    if importlib.util.find_spec("torch") is None:
        return f"{run.model.factory}, not checked: torch is not installed here"
    from trainer.data.dataset import open_dataset
    from trainer.models import build, probe

    model = build(run.model.factory, run.model.args)
    count = sum(parameter.numel() for parameter in model.parameters())
    if not packed:
        return f"{run.model.factory}, {count:,} parameters"
    loss = probe(model, open_dataset(run.data.path).batch([0]))
    mean = float(loss.loss_sum) / max(1.0, float(loss.weight))
    return f"{run.model.factory}, {count:,} parameters; takes this data, loss before training {mean:.3f}"
