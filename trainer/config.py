"""run.yml -> frozen, validated values. The only reader of configuration.

A user edits one file, `run.yml`; `field=value` on the command line or `-e` of Ansible override it. Every field has a
default; an unknown key, a wrong type or an impossible combination is one message before anything is touched.
`LIVE` lists what may change while a run trains; everything else restarts it from a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trainer.errors import ConfigError
from trainer.runfile import Document, explain, parse_file, parse_override

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")]
Count = Annotated[int, Field(ge=1, le=2**40)]


class Settings(BaseModel):
    """Frozen, unknown keys refused, no silent conversion of `"8"` to 8."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Model(Settings):
    factory: str = Field("mlp", min_length=1, description="name in the catalogue, or package.module:factory")
    args: dict[str, Any] = Field({}, description="passed to the factory by name")


class Data(Settings):
    path: str = Field("data/digits", min_length=1, description="folder made by `gradferry pack`")
    pack: str | None = Field(None, description="source that is packed to `path` when `path` is missing")


class Accumulation(Settings):
    accum_steps: Count | None = Field(
        4, description="micro-batches per window and replica; null: as global_batch has it"
    )
    micro_batch: Count = Field(8, description="samples per backward pass and replica")
    global_batch: Count | None = Field(None, description="samples per optimizer step over all replicas; dealt out")
    relation: Literal["any", "exact"] = Field("any", description="exact: refuse a global batch that leaves a remainder")
    max_global_batch: Count | None = Field(None, description="bound for whatever chooses the window by itself")

    @model_validator(mode="before")
    @classmethod
    def _global_batch_decides(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("global_batch") is not None:
            return {"accum_steps": None} | values
        return values

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Accumulation:
        if self.accum_steps is None and self.global_batch is None:
            raise ValueError("accum_steps = null needs a global_batch that it follows from")
        return self

    @property
    def keeps_global_batch(self) -> bool:
        """True where the user named the global batch: then it stays when the number of replicas changes."""
        return self.global_batch is not None


class Optimizer(Settings):
    kind: Literal["sgd", "adamw"] = "sgd"
    lr: float = Field(0.1, gt=0, le=1e3, description="rate for `lr_scaling.base_batch` samples")
    momentum: float = Field(0.0, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0, le=10)
    betas: tuple[float, float] = Field((0.9, 0.999), strict=False)
    eps: float = Field(1e-8, gt=0)

    @model_validator(mode="after")
    def _betas_are_decays(self) -> Optimizer:
        if not all(0 <= b < 1 for b in self.betas):
            raise ValueError(f"betas = {list(self.betas)}: each must be in [0, 1)")
        return self


class Schedule(Settings):
    kind: Literal["constant", "linear", "cosine"] = "constant"
    warmup: int = Field(0, ge=0, description="optimizer steps (or samples) of linear warm-up")
    total: Count | None = Field(None, description="end of the schedule; null: the end of the run")
    unit: Literal["steps", "samples"] = "steps"

    @model_validator(mode="after")
    def _warmup_ends_before_total(self) -> Schedule:
        if self.total is not None and self.warmup >= self.total:
            raise ValueError(f"warmup = {self.warmup} must be less than total = {self.total}")
        return self


class LrScaling(Settings):
    rule: Literal["linear", "sqrt", "none"] = "linear"
    base_batch: Count | None = Field(None, description="global batch that `optimizer.lr` is for; null: the run's own")
    ramp_steps: int = Field(5, ge=0, le=10**6, description="optimizer steps over which a live change moves the rate")


class Evaluate(Settings):
    every_steps: Count = Field(50, description="optimizer steps between evaluations on the held-out split")
    patience: Count | None = Field(None, description="stop after so many evaluations without a new best; null: never")


class Checkpoint(Settings):
    every_steps: Count = Field(50, description="optimizer steps between checkpoints")
    keep: Count = Field(3, description="newest ones that stay on a host")
    keep_best: bool = Field(False, description="also keep the one with the best evaluation")


class Nonfinite(Settings):
    stop_after: Count = Field(20, description="windows in a row with a non-finite gradient before the run stops")


class Network(Settings):
    reduce_deadline_s: float = Field(60.0, ge=1, le=3600, description="an exchange that takes longer has lost a peer")
    rendezvous_s: float = Field(300.0, ge=5, le=86400, description="wait for the other replicas at the start")


class Metrics(Settings):
    port: int | None = Field(None, ge=1024, le=65535, description="Prometheus text on the mesh address; null: off")
    every_steps: Count = Field(1, description="optimizer steps between lines")


class Limits(Settings):
    cpus: float | None = Field(None, gt=0, le=4096, description="CPU quota of the container; null: none")
    memory_gb: float | None = Field(None, gt=0, le=65536, description="memory limit of the container; null: none")
    threads: int = Field(1, ge=1, le=4096, description="threads of one process on the CPU")


class Run(Settings):
    """Everything a run is told. One value, the same for templates, trainer, planner and status."""

    name: Name = "gradferry"
    seed: int = Field(17, ge=0, le=2**31 - 1)
    strategy: Literal["auto", "single", "dp", "ddp", "fleet"] = "auto"
    epochs: Count = 20
    max_steps: Count | None = None
    model: Model = Model()
    data: Data = Data()
    accumulation: Accumulation = Accumulation()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    lr_scaling: LrScaling = LrScaling()
    clip_grad_norm: float | None = Field(1.0, gt=0, le=1e6, description="bound on the gradient norm, typical 1.0-5.0")
    amp: Literal["auto", "off", "bf16", "fp16"] = "auto"
    precision: Literal["float32", "float64"] = "float32"
    devices: Annotated[int, Field(ge=1, le=64)] | Literal["auto"] = Field("auto", description="of one process (dp)")
    ema_decay: float | None = Field(None, gt=0, lt=1, description="average of the weights for evaluation; null: off")
    evaluate: Evaluate = Evaluate()
    checkpoint: Checkpoint = Checkpoint()
    nonfinite: Nonfinite = Nonfinite()
    network: Network = Network()
    metrics: Metrics = Metrics()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _parts_agree(self) -> Run:
        if self.precision == "float64" and self.amp in ("bf16", "fp16"):
            raise ValueError(f"amp = {self.amp} cannot be combined with precision = float64; use amp: off")
        if self.devices != "auto" and self.devices > 1 and self.strategy not in ("auto", "dp"):
            raise ValueError(f"devices = {self.devices} needs strategy: dp, seen {self.strategy}")
        return self


# What may change while a run trains (dotted; a name ending in "." covers the whole section).
LIVE = (
    "accumulation.",
    "optimizer.lr",
    "lr_scaling.ramp_steps",
    "clip_grad_norm",
    "evaluate.",
    "checkpoint.",
    "nonfinite.",
    "metrics.every_steps",
)


def load_run(path: str | Path, overrides: Mapping[str, object] | Iterable[str] = ()) -> Run:
    """Read `path` (run.yml, or the run.json of a host) with `overrides` on top.

    `overrides` is `{"accumulation.accum_steps": 8}` or `["accumulation.accum_steps=8"]`.
    Raises ConfigError with file, line, field, what was seen and what is allowed.
    """
    document = parse_file(Path(path))
    if set(document.values) == {"run", "revision", "hosts"}:  # a host's run.json: the run is one of its parts
        document = Document(document.source, document.values["run"], {})
    return build_run(document, overrides)


def build_run(document: Document, overrides: Mapping[str, object] | Iterable[str] = ()) -> Run:
    """As `load_run`, from what is already parsed."""
    pairs = overrides.items() if isinstance(overrides, Mapping) else map(parse_override, overrides)
    for field, value in pairs:
        document = document.with_override(field, value)
    try:
        return Run.model_validate(document.values)
    except ValidationError as error:
        raise ConfigError(*explain(error, document, Run)) from None


def fields(run: Run) -> dict[str, object]:
    """The run as `{"accumulation.accum_steps": 4, ...}`; `model.args` stays one field."""
    flat: dict[str, object] = {}
    for name, value in run.model_dump(mode="json").items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            flat[name] = value
    return flat


def changes(old: Run, new: Run) -> dict[str, tuple[object, object]]:
    """Dotted field -> (old value, new value) for every field that differs."""
    before, after = fields(old), fields(new)
    return {name: (before[name], after[name]) for name in after if before[name] != after[name]}


def is_live(field: str) -> bool:
    """True where `field` may change without a restart."""
    return any(field.startswith(name) if name.endswith(".") else field == name for name in LIVE)


def live_changes(old: Run, new: Run) -> dict[str, tuple[object, object]]:
    return {name: pair for name, pair in changes(old, new).items() if is_live(name)}


def restart_changes(old: Run, new: Run) -> dict[str, tuple[object, object]]:
    return {name: pair for name, pair in changes(old, new).items() if not is_live(name)}


def revision(run: Run) -> str:
    """12 hex digits (48 bits, exact in a float64) of the run's content."""
    text = json.dumps(run.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
