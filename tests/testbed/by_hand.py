"""What a person types: up, down, clean and the like."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace

from tests.testbed.bed import Bed, attach, names, remove, up
from tests.testbed.demo.script import demo
from tests.testbed.folders import of_this_clone
from tests.testbed.inventory import remove_inventory, write_inventory
from tests.testbed.plan import THREE, Plan
from tests.testbed.removal import remove_bed, remove_cached
from tests.testbed.timings import timings
from tests.testbed.trainer_build import wheels_images
from tests.testbed.workshop import open_if_running, open_workshop, say_on_stderr

LOCAL = "local"  # the bed of `make up`; its inventory is inventory.local.ini

_NEXT = """\
{count} hosts are up ({kind}), with a WAN between them: {links}.

  cp -n examples/digits.yml run.yml; cd ansible
  ../.venv/bin/ansible-playbook -i {inventory} site.yml
  ../.venv/bin/ansible-playbook -i {inventory} playbooks/status.yml
  ../.venv/bin/ansible-playbook -i {inventory} playbooks/redeploy.yml -e accum_steps=8
  ../.venv/bin/ansible-playbook -i {inventory} playbooks/teardown.yml -e confirm=digits
  {ssh}

make down takes them away."""


def start(asked: Namespace) -> None:
    """Start a bed, write its inventory, print what to type next."""
    shop = open_workshop()
    made = up(shop, Plan(asked.name, THREE[: asked.hosts], "plain" if asked.plain else "ready"))
    inventory = made.inventory
    if asked.name == LOCAL:
        inventory = shop.folders.root / "inventory.local.ini"
        write_inventory(inventory, made.state, made.folder)
    print(_next(made, f"../{inventory.relative_to(shop.folders.root)}"))


def stop(asked: Namespace) -> None:
    """Take a bed away; one that is not there is no error."""
    folders, shop = of_this_clone(), open_if_running()
    count = remove(shop, asked.name) if shop else 0
    if asked.name == LOCAL:
        remove_inventory(folders.root / "inventory.local.ini")
    say_on_stderr(f"removed {count} containers, networks and volumes of bed {asked.name}")


def clean(_: Namespace) -> None:
    """Every bed of this clone, its images, seeds and cached files. Nothing of another clone's or of anybody else's."""
    folders, shop = of_this_clone(), open_if_running()
    count = 0
    if shop:
        count = remove_bed(shop.client, shop.owner())
        count += remove_cached(shop.client, shop.owner(), wheels_images(folders))
    shutil.rmtree(folders.cache, ignore_errors=True)
    remove_inventory(folders.root / "inventory.local.ini")
    say_on_stderr(f"removed {count} containers, networks, volumes and images of this clone")


def demonstrate(_: Namespace) -> None:
    demo()


def measure(asked: Namespace) -> None:
    """Time site.yml on a bed whose trainers run; a line of JSON."""
    shop = open_workshop()
    found = timings(
        attach(shop, asked.name), asked.run_file.resolve(), shop.folders.artifacts / "timings", asked.setting
    )
    print(json.dumps(found))


def show(_: Namespace) -> None:
    for name in names(of_this_clone()):
        print(name)


def engine(_: Namespace) -> None:
    shop = open_workshop()
    shop.say(f"Docker engine {shop.client.version()['Version']} answers")


def base_image(_: Namespace) -> None:
    print(open_workshop().images.tag("base"))


def _next(made: Bed, inventory: str) -> str:
    first = next(iter(made.hosts.values()))
    return _NEXT.format(
        count=len(made.hosts),
        kind=f"{made.state.kind} ones",
        links=made.state.links.sentence(),
        inventory=inventory,
        ssh=" ".join(first.ssh_argv()),
    )
