"""Docker networks of a bed: one per region, on subnets that nobody uses."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path
from random import Random

from docker import DockerClient
from docker.errors import APIError
from docker.types import IPAMConfig, IPAMPool

from tests.testbed.addresses import Site, free_sites, routed_networks
from tests.testbed.errors import BedError
from tests.testbed.labels import Owner


def make_site(client: DockerClient, name: str, owner: Owner) -> Site:
    """A new network `name`. A subnet that another bed takes between our look and our request is passed over."""
    for site, _ in zip(free_sites(_used(client), Random(name)), range(50), strict=False):
        ipam = IPAMConfig(pool_configs=[IPAMPool(subnet=str(site.network), gateway=str(site.gateway))])
        try:
            client.networks.create(name, driver="bridge", ipam=ipam, labels=owner.labels("network"))
        except APIError as error:
            if "overlap" in str(error).lower():
                continue
            raise BedError(f"Docker network {name} cannot be made: {error.explanation}") from error
        return site
    raise BedError("No free subnet for the test bed", "Remove Docker networks that nobody needs: docker network ls")


def _used(client: DockerClient) -> list[IPv4Network]:
    used = routed_networks(Path("/proc/net/route").read_text())
    for network in client.networks.list():
        for config in (network.attrs.get("IPAM") or {}).get("Config") or []:
            subnet = config.get("Subnet", "")
            if subnet and ":" not in subnet:
                used.append(IPv4Network(subnet))
    return used
