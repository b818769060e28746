"""Where a clone keeps what the test bed makes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folders:
    """Folders of one clone. Nothing is made here: whoever writes makes its folder."""

    root: Path

    @property
    def cache(self) -> Path:
        return self.root / ".cache" / "testbed"

    @property
    def beds(self) -> Path:
        return self.cache / "beds"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def ansible(self) -> Path:
        return self.root / "ansible"

    @property
    def clone_id(self) -> str:
        """Tells this clone's containers, networks, volumes and images from another clone's on the same engine."""
        return hashlib.sha256(str(self.root).encode()).hexdigest()[:12]


def of_this_clone() -> Folders:
    return Folders(Path(__file__).resolve().parents[2])
