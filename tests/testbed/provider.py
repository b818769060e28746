"""Create the container of a host: a VPS as a provider hands it over, with the operator's key in it."""

from __future__ import annotations

from dataclasses import dataclass

from docker import DockerClient
from docker.models.containers import Container

from tests.testbed.keys import put_file
from tests.testbed.labels import Owner
from tests.testbed.plan import Placed
from tests.testbed.privileges import Profile, host_config


@dataclass(frozen=True)
class Provider:
    """What hosts of one bed have in common. `routes`: subnet of every site, for the way through the WAN."""

    client: DockerClient
    owner: Owner
    image: str
    profile: Profile
    public_key: str
    subnets: tuple[str, ...]

    def create(self, placed: Placed) -> Container:
        """A new host with an empty disk (its inner Docker's volume is kept if it is there); started."""
        self.client.volumes.create(placed.volume, labels=self.owner.labels("volume"))  # or the one that is there
        endpoint = self.client.api.create_endpoint_config(ipv4_address=placed.address)
        created = self.client.api.create_container(
            self.image,
            name=placed.container,
            hostname=placed.host,
            labels=self.owner.labels("host"),
            host_config=host_config(self.profile, (f"{placed.volume}:/var/lib/docker",))
            | {"NetworkMode": placed.network},
            networking_config={"EndpointsConfig": {placed.network: endpoint}},
        )
        container = self.client.containers.get(created["Id"])
        put_file(container, "/root/.ssh/authorized_keys", self.public_key, 0o600)
        put_file(container, "/etc/testbed-routes", self.routes(placed))
        container.start()
        return container

    def routes(self, placed: Placed) -> str:
        """`ip -batch` text: other regions through the WAN; the default route stays the engine's, for downloads."""
        others = [subnet for subnet in self.subnets if subnet != placed.subnet]
        return "".join(f"route replace {subnet} via {placed.router}\n" for subnet in others)
