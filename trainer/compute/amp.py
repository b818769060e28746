"""Mixed precision: which one, and the context in which a forward pass runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch

from trainer.compute.scaler import LossScaler

Amp = Literal["off", "bf16", "fp16"]
Autocast = Callable[[], AbstractContextManager[object]]

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def resolve(amp: str, precision: str, device: torch.device) -> Amp:
    """`auto` by device: bf16 where a GPU computes in it, fp16 on an older one; off on a CPU and in float64."""
    if amp != "auto":
        return amp  # type: ignore[return-value]
    if device.type != "cuda" or precision == "float64":
        return "off"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"


def autocast(amp: Amp, device: torch.device) -> Autocast:
    """A factory of contexts; parameters and gradient sums stay in their own type."""
    if amp == "off":
        return nullcontext
    return lambda: torch.autocast(device.type, dtype=_DTYPES[amp])


def scaler_of(amp: Amp) -> LossScaler:
    """fp16 needs a loss scale, the others have the range of float32."""
    return LossScaler() if amp == "fp16" else LossScaler.off()
