"""Labels by which the test bed finds again what it made, and nothing else."""

from __future__ import annotations

CLONE = "gradferry.testbed.clone"  # which clone made it
BED = "gradferry.testbed.bed"  # which bed it belongs to; images and seed volumes belong to none
ROLE = "gradferry.testbed.role"  # host, wan, control, seed, image


def labels(clone_id: str, role: str, bed: str | None = None) -> dict[str, str]:
    """Labels of a thing with `role`, of `bed` if it belongs to one."""
    return {CLONE: clone_id, ROLE: role} | ({BED: bed} if bed else {})


def having(clone_id: str, bed: str | None = None) -> dict[str, list[str]]:
    """Filter for Docker's lists: everything of this clone, or of one bed in it."""
    return {"label": [f"{CLONE}={clone_id}"] + ([f"{BED}={bed}"] if bed else [])}
