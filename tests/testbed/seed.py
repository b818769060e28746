"""A seed: a copy of a host's inner Docker, from which other hosts start with the image's layers already there.

Made from a host that really pulled. Beds that use one say so (`image_seeded`).
"""

from __future__ import annotations

from docker import DockerClient

from tests.testbed.errors import BedError
from tests.testbed.host import Host
from tests.testbed.labels import Owner

# Containers and networks of the host that was copied are its own; layers and images are what a seed is for.
_COPY = "cp -a /from/. /to/ && rm -rf /to/containers /to/network /to/swarm /to/tmp"


def seed_name(clone_id: str, content: str) -> str:
    """Name of the seed volume for hosts that hold image `content` (its own label or id)."""
    return f"gf-seed-{clone_id[:6]}-{content[:24]}"


def has_seed(client: DockerClient, name: str) -> bool:
    return any(volume.name == name for volume in client.volumes.list(filters={"name": name}))


def take_seed(host: Host, name: str, helper_image: str, owner: Owner) -> None:
    """Copy the inner Docker of `host`, whose trainer must not run; Docker is stopped meanwhile."""
    client = host.client
    if host.succeeds("systemctl is-active -q gradferry-trainer"):
        raise BedError(f"{host.name}: its trainer runs; a seed is taken from a host at rest")
    host.run("systemctl stop docker.socket docker.service")
    client.volumes.create(name, labels=Owner(owner.clone_id).labels("seed"))
    try:
        copy_volume(client, host.placed.volume, name, helper_image, owner)
    finally:
        host.run("systemctl start docker.service")


def copy_volume(client: DockerClient, source: str, target: str, helper_image: str, owner: Owner) -> None:
    """By a container, so that it also works where the engine's disk cannot be reached from here."""
    client.containers.run(
        helper_image,
        ["sh", "-c", _COPY],
        entrypoint="",
        volumes={source: {"bind": "/from", "mode": "ro"}, target: {"bind": "/to", "mode": "rw"}},
        labels=owner.labels("copy"),
        network_mode="none",
        remove=True,
    )
