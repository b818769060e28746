"""A case's settings as the trainer's own: run, loss scaler, schedule."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.contracts.adapter.models import Unsupported
from trainer.compute.scaler import LossScaler
from trainer.config import Run
from trainer.optim.schedules import Position
from trainer.settings.inforce import InForce

FOREVER = 1 << 40
COMPUTE = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16"}


def run_of(given: Mapping[str, Any], *, low_precision: bool = False) -> Run:
    """The run that the case describes. `low_precision`: compute in the case's `compute_dtype`."""
    precision = "float32" if low_precision else given.get("dtype", "float64")
    values: dict[str, Any] = {
        "name": "case",
        "strategy": "auto",
        "epochs": FOREVER,  # the course ends by itself
        "accumulation": _accumulation(given),
        "optimizer": _optimizer(given["optimizer"]),
        "schedule": _schedule(given.get("schedule")),
        "lr_scaling": {"rule": "none", "ramp_steps": 0},
        "clip_grad_norm": given.get("clip_max_norm"),
        "amp": COMPUTE[given["compute_dtype"]] if low_precision else "off",
        "precision": precision,
        "ema_decay": given.get("ema_decay"),
        "evaluate": {"every_steps": FOREVER},
        "checkpoint": {"every_steps": 1 if "after_micro_batch" in (given.get("checkpoint") or {}) else FOREVER},
    }
    devices = given.get("devices_per_replica", 1)
    if devices > 1:
        values |= {"devices": devices, "strategy": "dp"}
    return Run.model_validate(values)


def _accumulation(given: Mapping[str, Any]) -> dict[str, Any]:
    if "global_batch" in given:
        return {"global_batch": given["global_batch"], "micro_batch": given["micro_batch"]}
    phases = given["accumulation"].get("phases")
    steps = phases[0]["steps"] if phases else given["accumulation"]["steps"]
    return {"accum_steps": max(steps) if isinstance(steps, list) else steps, "micro_batch": 1}


def with_steps(run: Run, steps: int) -> Run:
    """The same run with another number of micro-batches per window."""
    return run.model_copy(update={"accumulation": run.accumulation.model_copy(update={"accum_steps": steps})})


def _optimizer(given: Mapping[str, Any]) -> dict[str, Any]:
    if given["kind"] not in ("sgd", "adamw"):
        raise Unsupported(f"optimizer.kind {given['kind']}")
    return dict(given)


def _schedule(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None or given["kind"] == "sample_linear":
        return {"kind": "constant"}
    if given["kind"] != "warmup_linear" or set(given) != {"kind", "warmup_steps", "total_steps"}:
        raise Unsupported(f"schedule {given}")
    return {"kind": "linear", "warmup": given["warmup_steps"], "total": given["total_steps"]}


def scaler_of(given: Mapping[str, Any]) -> LossScaler | None:
    scaler = given.get("scaler")
    if scaler is None:
        return LossScaler.off()
    return LossScaler(
        scaler["init_scale"], scaler["growth_factor"], scaler["backoff_factor"], scaler["growth_interval"]
    )


def rate_of(given: Mapping[str, Any]) -> Callable[[InForce, Position], float]:
    """The trainer's own rate, or for `sample_linear` the formula that stands in the case's `rule`."""
    schedule = given.get("schedule")
    if schedule is None or schedule["kind"] != "sample_linear":
        return InForce.rate
    formula = _Formula(schedule.get("rule") or given.get("rule") or "")
    names = {k: v for k, v in schedule.items() if isinstance(v, int | float)} | {"lr": given["optimizer"]["lr"]}

    def rate(inforce: InForce, at: Position) -> float:
        return formula.value({**names, "window_samples": at.window_samples, "samples_before": at.samples})

    return rate


_PHRASES = (
    (
        r"(the )?(number of )?samples (seen|used|consumed|trained) ?(on )?(so far|before)?( the window| this window)?",
        "S",
    ),
    (r"(the )?(number of )?samples before( the window| this window)?", "S"),
    (r"(the )?(number of )?samples (of|in) (the|this) window", "N"),
    (r"\b(samples_seen|seen|samples_before)\b", "S"),
    (r"\b(window_samples|samples_of_window|samples_in_window)\b", "N"),
)
_OPERATORS: dict[type, Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}


class _Formula:
    """The right side of `... = ...` in a rule, as arithmetic over names; prose phrases for the two counts are names."""

    def __init__(self, rule: str) -> None:
        text = rule.rpartition("=")[2] if "=" in rule else rule
        for phrase, name in _PHRASES:
            text = re.sub(phrase, name, text)
        text = text.replace("×", "*").replace("·", "*").replace("−", "-").split(";")[0].strip().rstrip(".")
        try:
            self._tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise Unsupported(f"schedule rule cannot be read as a formula: {rule}") from None

    def value(self, names: Mapping[str, float]) -> float:
        known = {**names, "N": names["window_samples"], "S": names["samples_before"]}
        return float(self._of(self._tree, known))

    def _of(self, node: ast.AST, names: Mapping[str, float]) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._of(left, names), self._of(right, names))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](self._of(operand, names))
            case ast.Call(func=ast.Name(id="min" | "max" as function), args=arguments):
                return {"min": min, "max": max}[function](self._of(a, names) for a in arguments)
        raise Unsupported(f"schedule rule: {ast.dump(node)}")
