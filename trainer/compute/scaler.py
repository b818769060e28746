"""Loss scale for fp16, as a value. Counts optimizer steps, never micro-batches (torch.amp.GradScaler's arithmetic).

The loss is multiplied by `scale` before backward and the window's sum is divided by it once, before the norm is taken,
so that a scale leaves no trace in norm, clip or update (Micikevicius et al. 2018, arXiv:1710.03740).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class LossScaler:
    """`good` counts steps since the last change. A scaler that is off has scale 1 and never changes."""

    scale: float = 65536.0
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000
    good: int = 0

    @classmethod
    def off(cls) -> LossScaler:
        return cls(scale=1.0, growth_factor=1.0, backoff_factor=1.0)

    @property
    def active(self) -> bool:
        return self.growth_factor != 1.0 or self.scale != 1.0

    def after_step(self) -> LossScaler:
        """After a window whose gradient was finite and was used."""
        if self.good + 1 < self.growth_interval:
            return replace(self, good=self.good + 1)
        return replace(self, scale=self.scale * self.growth_factor, good=0)

    def after_overflow(self) -> LossScaler:
        """After a window that was skipped because its gradient was not finite."""
        return replace(self, scale=self.scale * self.backoff_factor, good=0)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
