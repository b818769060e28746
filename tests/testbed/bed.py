"""A bed that is up: its hosts, the WAN between them, its inventory, and how to call Ansible on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.control_node import from_control
from tests.testbed.errors import BedError
from tests.testbed.faults import Wan
from tests.testbed.folders import Folders
from tests.testbed.host import Host
from tests.testbed.interrupts import undisturbed
from tests.testbed.plan import Plan, State, load_state
from tests.testbed.playbook import Ansible
from tests.testbed.removal import remove_bed
from tests.testbed.rise import rise
from tests.testbed.workshop import Workshop


@dataclass(frozen=True)
class Bed:
    """Holds no state of its own: what changes is asked of the engine."""

    workshop: Workshop
    state: State
    folder: Path

    @property
    def hosts(self) -> dict[str, Host]:
        """By name, in the order of the inventory."""
        return {placed.host: Host(self.workshop.client, placed, self.folder) for placed in self.state.hosts}

    @property
    def wan(self) -> Wan:
        return Wan(self.folder / "wan" / "wan.sock")

    @property
    def inventory(self) -> Path:
        return self.folder / "inventory.ini"

    def ansible(self, log_folder: Path) -> Ansible:
        """Ansible as called on this machine, whose way to the hosts has no delay."""
        return Ansible(self.workshop.folders.ansible, self.inventory, log_folder)

    def ansible_from_afar(self, log_folder: Path) -> Ansible:
        """Ansible with the WAN between it and every host (`links.control_rtt_ms`). Needs root."""
        before = from_control(self.workshop.client, self.state.control)
        return Ansible(self.workshop.folders.ansible, self.inventory, log_folder, tuple(before))


@contextmanager
def bed(shop: Workshop, plan: Plan) -> Iterator[Bed]:
    """Up on entering, gone on leaving, however that comes about."""
    try:
        yield up(shop, plan)
    finally:
        remove(shop, plan.name)


def up(shop: Workshop, plan: Plan) -> Bed:
    """Make the bed; returns when SSH is up on every host. Nothing stays of one that fails."""
    folder = shop.folders.beds / plan.name
    if folder.exists():
        raise BedError(f"A bed named {plan.name} is there already", f"python -m tests.testbed down --name {plan.name}")
    try:
        state = rise(shop, plan, folder)
    except BaseException:  # Ctrl-C as well
        remove(shop, plan.name)
        raise
    made = Bed(shop, state, folder)
    return made


def attach(shop: Workshop, name: str) -> Bed:
    """The bed `name` that is up. Raises BedError if there is none."""
    folder = shop.folders.beds / name
    if not (folder / "bed.json").exists():
        raise BedError(f"No bed named {name} is up; there are: {', '.join(names(shop.folders)) or 'none'}", "make up")
    return Bed(shop, load_state(folder), folder)


def names(folders: Folders) -> list[str]:
    """Of the beds of a clone, begun ones too."""
    return sorted(path.name for path in folders.beds.glob("*"))


def remove(shop: Workshop, name: str) -> int:
    """Take the bed away, whatever state it is in. How many containers, networks and volumes there were."""
    with undisturbed():
        count = remove_bed(shop.client, shop.owner(name))
        shutil.rmtree(shop.folders.beds / name, ignore_errors=True)
    return count
