"""The inventory of a bed, as a user would write it for real hosts. Variables: see inventory.example.ini."""

from __future__ import annotations

from pathlib import Path

from tests.testbed.plan import State


def inventory(state: State, folder: Path) -> str:
    """Text of an INI inventory. Connection settings are Ansible's own; keys lie in the bed's `folder`."""
    lines = [
        f"# Bed {state.name} of the test bed ({state.image} hosts). {state.links.sentence()}.",
        "[gradferry_hosts]",
    ]
    for host in state.hosts:
        lines.append(
            f"{host.host} ansible_host={host.address} region={host.region} mesh_address={host.mesh_address}"
            f" endpoint={host.address}"
        )
    lines += [
        "",
        "[gradferry_hosts:vars]",
        "ansible_user=root",
        f"ansible_ssh_private_key_file={folder / 'id_ed25519'}",
        f"ansible_ssh_common_args=-o UserKnownHostsFile={folder / 'known_hosts'} -o StrictHostKeyChecking=accept-new",
    ]
    return "\n".join(lines) + "\n"
