"""Labels by which the test bed finds again what it made, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CLONE = "gradferry.testbed.clone"  # which clone made it
BED = "gradferry.testbed.bed"  # which bed it belongs to; images and seed volumes belong to none
ROLE = "gradferry.testbed.role"  # host, wan, control, network, volume, seed, image, probe, copy


@dataclass(frozen=True)
class Owner:
    """Whose a thing on the engine is: a clone's, and perhaps one of its beds'."""

    clone_id: str
    bed: str | None = None

    @property
    def prefix(self) -> str:
        """What names of the bed's containers, networks and volumes begin with: beds of two clones do not meet."""
        return f"gf-{self.clone_id[:4]}-{self.bed}"

    def labels(self, role: str) -> dict[str, str]:
        return {CLONE: self.clone_id, ROLE: role} | ({BED: self.bed} if self.bed else {})

    def filters(self) -> dict[str, Any]:
        """For the engine's lists: everything of the bed, or of the whole clone where no bed is named."""
        return {"label": [f"{CLONE}={self.clone_id}"] + ([f"{BED}={self.bed}"] if self.bed else [])}
