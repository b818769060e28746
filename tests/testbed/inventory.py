"""The inventory of a bed, as a user would write it for real hosts. Variables: see inventory.example.ini."""

from __future__ import annotations

from pathlib import Path

from tests.testbed.plan import Placed, State


def inventory(state: State, folder: Path) -> str:
    """Text of an INI inventory of all hosts of the bed, whose key lies in `folder`."""
    lines = [f"# Bed {state.name} of the test bed ({state.kind} hosts). {state.links.sentence()}.", "[hosts]"]
    lines += [line(host) for host in state.hosts]
    lines += ["", "[hosts:vars]", "ansible_user=root", f"ansible_ssh_private_key_file={folder / 'id_ed25519'}"]
    lines += [f"{name}={value}" for name, value in state.variables.items()]
    return "\n".join(lines) + "\n"


def line(host: Placed) -> str:
    """A host's own line."""
    return f"{host.host} ansible_host={host.address} region={host.region} mesh_address={host.mesh_address}"


def write_inventory(path: Path, state: State, folder: Path) -> None:
    """Write it, and forget the SSH keys of hosts that an earlier inventory of that name had."""
    path.write_text(inventory(state, folder))
    known_hosts(path).unlink(missing_ok=True)


def remove_inventory(path: Path) -> None:
    path.unlink(missing_ok=True)
    known_hosts(path).unlink(missing_ok=True)


def known_hosts(path: Path) -> Path:
    """The file beside an inventory in which the playbooks keep the hosts' SSH keys."""
    return path.with_suffix(".known_hosts")
