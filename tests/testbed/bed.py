"""A bed: stand-in hosts with an emulated WAN between them. Up and down; findable by name from another process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docker import DockerClient

from tests.testbed.engine import Say, connect
from tests.testbed.errors import BedError
from tests.testbed.folders import Folders, of_this_clone
from tests.testbed.host import Host
from tests.testbed.images import Images
from tests.testbed.inventory import inventory
from tests.testbed.keys import make_key
from tests.testbed.networks import make_site
from tests.testbed.plan import Placed, Plan, Region, State, load_state
from tests.testbed.privileges import profile
from tests.testbed.removal import remove_bed
from tests.testbed.router import start_emulator, start_router, table
from tests.testbed.start_host import Provider

CONTROL = Region("control", "control")


@dataclass(frozen=True)
class Workshop:
    """What beds are made with: an engine, the clone's folders, and someone to tell about progress."""

    client: DockerClient
    folders: Folders
    say: Say

    @property
    def images(self) -> Images:
        return Images(self.client, self.folders, self.say)


def workshop(say: Say = print) -> Workshop:
    """Of this clone, on this machine's engine. Raises BedError where there is none and none can be started."""
    folders = of_this_clone()
    return Workshop(connect(folders.cache, say), folders, say)


@dataclass(frozen=True)
class Bed:
    """A bed that is up."""

    workshop: Workshop
    state: State
    folder: Path

    @property
    def hosts(self) -> dict[str, Host]:
        """By name, in the order of the inventory."""
        return {placed.host: Host(self.workshop.client, placed, self.folder) for placed in self.state.hosts}

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory.ini"

    def down(self) -> None:
        remove(self.workshop, self.state.name)


@contextmanager
def bed(shop: Workshop, plan: Plan) -> Iterator[Bed]:
    """Up on entering, gone on leaving, however that comes about."""
    try:
        yield up(shop, plan)
    finally:
        remove(shop, plan.name)


def up(shop: Workshop, plan: Plan) -> Bed:
    """Make the bed; returns when SSH is up on each host. What was begun stays if it fails: `remove` takes it away."""
    folder = shop.folders.beds / plan.name
    if folder.exists():
        raise BedError(f"A bed named {plan.name} is up already", f"Take it down first: make down NAME={plan.name}")
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    wan_folder = folder / "wan"
    wan_folder.mkdir()
    image, wan_image = shop.images.tag(plan.image), shop.images.tag("wan")
    rights = profile(shop.client, image, shop.folders.cache, shop.folders.clone_id, shop.say)
    sites = _sites(shop, plan)
    hosts, control = sites[:-1], sites[-1]
    subnets = tuple(site.subnet for site in sites)
    provider = Provider(shop.client, shop.folders.clone_id, plan.name, image, rights, make_key(folder), subnets)
    wan = start_router(
        shop.client, wan_image, f"gf-{plan.name}-wan", sites, shop.folders.clone_id, plan.name, wan_folder
    )
    start_emulator(wan, table(sites, plan.links), wan_folder)
    with ThreadPoolExecutor(len(hosts)) as pool:
        list(pool.map(provider.create, hosts))
    state = State(plan.name, plan.image, plan.seed is not None, plan.links, tuple(hosts), control, wan.name)
    state.save(folder)
    made = Bed(shop, state, folder)
    for host in made.hosts.values():
        host.wait_until_up()
    made.inventory.write_text(inventory(state, folder))
    return made


def attach(shop: Workshop, name: str) -> Bed:
    """The bed `name` that is up. Raises BedError if there is none."""
    folder = shop.folders.beds / name
    if not (folder / "bed.json").exists():
        up_now = ", ".join(sorted(path.parent.name for path in shop.folders.beds.glob("*/bed.json"))) or "none"
        raise BedError(f"No bed named {name} is up; there are: {up_now}", "make up")
    return Bed(shop, load_state(folder), folder)


def remove(shop: Workshop, name: str) -> int:
    """Take the bed away, whatever state it is in. How many containers, networks and volumes there were."""
    count = remove_bed(shop.client, shop.folders.clone_id, name)
    folder = shop.folders.beds / name
    shutil.rmtree(folder, ignore_errors=True)
    return count


def _sites(shop: Workshop, plan: Plan) -> list[Placed]:
    """A network per region, and last the one of the control node's vantage point."""
    sites = []
    for number, region in enumerate((*plan.regions, CONTROL), 1):
        name = f"gf-{plan.name}-{region.host}"
        site = make_site(shop.client, name, shop.folders.clone_id, plan.name)
        sites.append(
            Placed(
                host=region.host,
                region=region.region,
                container=name,
                network=name,
                volume=f"{name}-docker",
                subnet=str(site.network),
                address=str(site.host),
                router=str(site.router),
                mesh_address=f"10.88.0.{number}",
            )
        )
    return sites
