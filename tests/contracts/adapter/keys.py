"""Every key that the adapter understands. Anything else in a case fails it: nothing is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.contracts.adapter.models import Unsupported

GIVEN = {
    "kind": None,
    "dtype": None,
    "model": {
        *("kind", "params", "frozen", "vocab", "p", "rng_seed", "bn_momentum", "bn_eps"),
    },
    "data": {"x", "y", "route", "sequences", "labels", "ignore_label"},
    "loss": {"kind", "normaliser", "label_smoothing"},
    "optimizer": {"kind", "lr", "momentum", "weight_decay", "betas", "eps"},
    "stream": {"replicas", "epochs", "shuffle"},
    "accumulation": {"steps", "at_epoch_end", "phases"},
    "schedule": None,  # `sample_linear` brings names of its own
    "clip_max_norm": None,
    "scaler": {"init_scale", "growth_factor", "backoff_factor", "growth_interval"},
    "inject": None,
    "checkpoint": {"after_optimizer_step", "after_micro_batch"},
    "recompute_activations": None,
    "padding": {"pad_token", "rule"},
    "rule": None,
    "note": None,
    "time_limit_s": None,
    "order": None,
    "global_batch": None,
    "micro_batch": None,
    "world_phases": None,
    "ema_decay": None,
    "devices_per_replica": None,
    "compute_dtype": None,
}
FIXED = {
    ("accumulation", "at_epoch_end"): ("flush",),
    ("stream", "shuffle"): (False,),
    ("data", "ignore_label"): (-100,),
    ("loss", "kind"): ("next_token_cross_entropy", "squared_error", "dot"),
}


def check_keys(given: Mapping[str, Any]) -> None:
    """Raises Unsupported naming the first key or value that is not known."""
    for name, value in given.items():
        if name not in GIVEN:
            raise Unsupported(f"given.{name}")
        known = GIVEN[name]
        if known is not None and value is not None:
            for inner in value:
                if inner not in known:
                    raise Unsupported(f"given.{name}.{inner}")
    for (section, name), allowed in FIXED.items():
        value = given.get(section, {}).get(name, allowed[0])
        if value not in allowed:
            raise Unsupported(f"given.{section}.{name} = {value}")
    if given.get("dtype", "float64") not in ("float64", "float32"):
        raise Unsupported(f"given.dtype = {given['dtype']}")
