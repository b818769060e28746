"""The WAN between the sites: a router container with the emulator in its network namespace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.models.containers import Container

from tests.testbed.labels import Owner
from tests.testbed.plan import Links, Placed
from tests.testbed.wait import wait_for
from tests.testbed.wan.client import Client

PACKAGE = Path(__file__).parent / "wan"
INSIDE = "/run/testbed"


def table(sites: list[Placed], links: Links) -> dict[str, Any]:
    """The emulator's table for a bed: delay and rate of each direction."""
    delays = {
        f"{a.host}>{b.host}": {"delay_ms": links.one_way_ms(a.region, b.region)} for a in sites for b in sites if a != b
    }
    return {
        "nodes": {site.host: site.address for site in sites},
        "default": {"rate_mbit_s": links.rate_mbit_s},
        "links": delays,
    }


def start_router(client: DockerClient, image: str, sites: list[Placed], owner: Owner, folder: Path) -> Container:
    """The router, on every site's network, without emulation yet. `folder` is where its socket will be."""
    first, *others = sites
    container = client.containers.create(
        image,
        name=f"{owner.prefix}-wan",
        hostname="wan",
        cap_add=["NET_ADMIN", "SYS_NICE"],
        sysctls={"net.ipv4.ip_forward": "1"},
        volumes={str(folder): {"bind": INSIDE, "mode": "rw"}, str(PACKAGE): {"bind": "/opt/testbed/wan", "mode": "ro"}},
        labels=owner.labels("wan"),
        network=first.network,
        networking_config={first.network: client.api.create_endpoint_config(ipv4_address=first.router)},
    )
    for site in others:
        client.networks.get(site.network).connect(container, ipv4_address=site.router)
    container.start()
    return container


def start_emulator(container: Container, config: dict[str, Any], folder: Path) -> None:
    """Emulate `config` in the router; it ends with its container.

    As root from outside: a real-time priority is refused inside a container on cgroup v1. Else inside it.
    """
    (folder / "table.json").write_text(json.dumps(config, indent=2))
    if os.geteuid() == 0 and shutil.which("nsenter") and shutil.which("iptables"):
        _from_outside(container, folder)
    else:
        command = ["python3", "-m", "wan", f"{INSIDE}/table.json", "--folder", INSIDE]
        container.exec_run(command, workdir="/opt/testbed", detach=True)
    wait_for(lambda: _answers(folder / "wan.sock"), "WAN emulator answers", within_s=20)


def _from_outside(container: Container, folder: Path) -> None:
    container.reload()
    pid = str(container.attrs["State"]["Pid"])
    command = ["nsenter", "--target", pid, "--net", sys.executable, "-m", "wan"]
    arguments = [str(folder / "table.json"), "--folder", str(folder), "--owner", pid]
    with (folder / "wan.out").open("ab") as out:
        subprocess.Popen(
            [*command, *arguments],
            cwd=PACKAGE.parent,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def _answers(path: Path) -> bool:
    with Client(path) as wan:
        return bool(wan.stats())
