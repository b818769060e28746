"""A place to run the control node's commands from: behind the WAN, as far from the hosts as a user may sit."""

from __future__ import annotations

import os
import shutil

from docker import DockerClient
from docker.models.containers import Container

from tests.testbed.errors import BedError
from tests.testbed.labels import Owner
from tests.testbed.plan import Placed


def start_control(client: DockerClient, image: str, control: Placed, hosts: list[Placed], owner: Owner) -> Container:
    """A sleeping container whose network is the vantage point: its way to every host leads through the WAN."""
    container = client.containers.create(
        image,
        name=control.container,
        hostname=control.host,
        cap_add=["NET_ADMIN"],
        labels=owner.labels("control"),
        network=control.network,
        networking_config={control.network: client.api.create_endpoint_config(ipv4_address=control.address)},
    )
    container.start()
    for host in hosts:
        code, output = container.exec_run(["ip", "route", "replace", host.subnet, "via", control.router])
        if code:
            raise BedError(f"control vantage point: no route to {host.host}: {output!r}")
    return container


def from_control(client: DockerClient, control: Placed) -> list[str]:
    """What to put before a command of this machine so that its network is the vantage point's. Needs root."""
    if os.geteuid() != 0 or not shutil.which("nsenter"):
        raise BedError("commands from the control vantage point need root and nsenter", "Run as root, or leave it out")
    pid = client.containers.get(control.container).attrs["State"]["Pid"]
    return ["nsenter", "--target", str(pid), "--net"]
