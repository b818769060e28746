"""Take away what carries our labels, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from docker import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from tests.testbed.cgroups import swept
from tests.testbed.labels import BED, ROLE, Owner

# Containers first, as `live-restore` lets them outlive their engine; the trainer's unit must not start it again.
STOP_INNER = """
systemctl stop --no-block gradferry-trainer.service
timeout 10 docker ps -q | xargs -r timeout 20 docker kill
timeout 20 systemctl stop docker.socket docker.service containerd.service
"""


def remove_bed(client: DockerClient, owner: Owner) -> int:
    """Containers, networks and volumes of one bed, or of all beds of the clone. How many things there were."""
    having_labels = owner.filters()
    # A container of an image that was built on ours has the image's labels, and is not ours for that.
    found = client.containers.list(all=True, filters=having_labels)
    containers = [container for container in found if container.labels.get(ROLE) != "image"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(remove_container, containers))
    networks = client.networks.list(filters=having_labels)
    volumes = client.volumes.list(filters=having_labels)
    _each(networks, lambda network: network.remove())
    _each([volume for volume in volumes if BED in _labels(volume)], lambda volume: volume.remove(force=True))
    return len(containers) + len(networks) + len(volumes)


def remove_cached(client: DockerClient, owner: Owner, wheels: Iterable[str]) -> int:
    """Seed volumes, the registry's volume and images; how many are gone. What somebody else's container uses stays.

    What was built on our images has their labels. `wheels`: images that are built on none, by name.
    """
    volumes = [volume.name for volume in client.volumes.list(filters=owner.filters())]
    images = client.images.list(filters=owner.filters())
    names = [*wheels, *(name for image in images for name in image.tags or [str(image.id)])]
    gone = [_gone(client.api.remove_volume, name) for name in volumes]
    return sum(gone + [_gone(client.api.remove_image, name) for name in names])


def remove_container(container: Container) -> None:
    with swept(container), suppress(NotFound):
        with suppress(APIError):  # it may not run, or have no systemd any more
            if container.labels.get(ROLE) == "host" and container.status == "running":
                container.exec_run(["sh", "-c", STOP_INNER])
        container.remove(force=True, v=True)


def _gone(remove: Callable[[str], object], name: str) -> bool:
    try:
        remove(name)
    except APIError:  # in use, or gone already with another name of it
        return False
    return True


def _labels(volume: Any) -> dict[str, str]:
    return volume.attrs.get("Labels") or {}


def _each(things: Iterable[Any], remove: Callable[[Any], object]) -> None:
    for thing in things:
        with suppress(NotFound):
            remove(thing)
