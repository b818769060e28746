"""A host is lost and rented anew: a bare one of the same name at the same address."""

from __future__ import annotations

import tempfile
from typing import Literal

from docker.errors import NotFound
from docker.models.containers import Container

from tests.testbed.bed import Bed
from tests.testbed.removal import remove_container
from tests.testbed.rise import provider

DATA = "/var/lib/gradferry"


def lose(bed: Bed, host: str) -> None:
    """`host` dies at once and does not come back: no drain, no goodbye. Its disk stays until `replace`."""
    bed.hosts[host].power_off()


def replace(bed: Bed, host: str, *, disk: Literal["kept", "lost"]) -> None:
    """A new machine in place of `host`, lost or not: bare, with SSH keys of its own.

    disk kept: the data disk (/var/lib/gradferry) was moved over and nothing else. lost: nothing is there.
    """
    placed = bed.hosts[host].placed
    old = bed.hosts[host].container
    with tempfile.TemporaryFile() as moved:
        kept = disk == "kept" and _read_disk(old, moved)
        remove_container(old)
        bed.workshop.client.volumes.get(placed.volume).remove(force=True)
        new = provider(bed.workshop, bed.state, bed.folder).create(placed)
        if kept:
            moved.seek(0)
            new.put_archive("/var/lib", moved)
    bed.hosts[host].wait_until_up()
    bed.workshop.say(f"{host} is a new machine, its data disk was {disk}")


def _read_disk(old: Container, file: object) -> bool:
    """Copy the data folder as a tar; False where there is none."""
    try:
        chunks, _ = old.get_archive(DATA)
    except NotFound:
        return False
    for chunk in chunks:
        file.write(chunk)  # type: ignore[attr-defined]
    return True
