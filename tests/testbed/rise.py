"""Make a bed: networks, router, emulator, hosts, vantage point, inventory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.testbed.control_node import start_control
from tests.testbed.host import Host
from tests.testbed.inventory import write_inventory
from tests.testbed.keys import make_key
from tests.testbed.networks import make_site
from tests.testbed.plan import Placed, Plan, Region, State
from tests.testbed.privileges import profile
from tests.testbed.provider import Provider
from tests.testbed.router import start_emulator, start_router, table
from tests.testbed.seed import copy_volume
from tests.testbed.trainer_build import build_variables
from tests.testbed.workshop import Workshop

CONTROL = Region("control", "control")


def rise(shop: Workshop, plan: Plan, folder: Path) -> State:
    """The bed of `plan`, up, with its files in `folder`, which is new. What was begun stays if it fails."""
    wan_folder = folder / "wan"
    wan_folder.mkdir(parents=True)
    folder.chmod(0o700)
    make_key(folder)
    image, wan_image = shop.images.tag(plan.image), shop.images.tag("wan")
    owner = shop.owner(plan.name)
    sites = [_site(shop, plan, number, region) for number, region in enumerate((*plan.regions, CONTROL), 1)]
    seeded, variables = plan.seed is not None, build_variables(shop, plan.name)
    state = State(plan.name, plan.image, image, seeded, plan.links, tuple(sites[:-1]), sites[-1], variables)
    state.save(folder)
    router = start_router(shop.client, wan_image, sites, owner, wan_folder)
    start_emulator(router, table(sites, plan.links), wan_folder)
    start_control(shop.client, wan_image, state.control, list(state.hosts), owner)
    if plan.seed:
        _plant(shop, plan.seed, state, wan_image)
    _start_hosts(shop, state, folder)
    write_inventory(folder / "inventory.ini", state, folder)
    return state


def provider(shop: Workshop, state: State, folder: Path) -> Provider:
    """Whoever hands over hosts of this bed."""
    subnets = tuple(site.subnet for site in (*state.hosts, state.control))
    rights = profile(shop.client, state.image, shop.folders.cache, shop.owner(), shop.say)
    key = (folder / "id_ed25519.pub").read_text()
    return Provider(shop.client, shop.owner(state.name), state.image, rights, key, subnets)


def _start_hosts(shop: Workshop, state: State, folder: Path) -> None:
    source = provider(shop, state, folder)
    with ThreadPoolExecutor(len(state.hosts)) as pool:
        list(pool.map(source.create, state.hosts))
    for placed in state.hosts:
        Host(shop.client, placed, folder).wait_until_up()


def _plant(shop: Workshop, seed: str, state: State, helper_image: str) -> None:
    """Give each host's inner Docker a copy of the seed; one after the other, as they share a disk."""
    for placed in state.hosts:
        shop.client.volumes.create(placed.volume, labels=shop.owner(state.name).labels("volume"))
        copy_volume(shop.client, seed, placed.volume, helper_image, shop.owner(state.name))


def _site(shop: Workshop, plan: Plan, number: int, region: Region) -> Placed:
    """A network for `region`, and the addresses in it."""
    owner = shop.owner(plan.name)
    name = f"{owner.prefix}-{region.host}"
    site = make_site(shop.client, name, owner)
    return Placed(
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
