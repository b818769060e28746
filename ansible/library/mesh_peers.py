#!/usr/bin/python
"""Make the peers of a running WireGuard interface the described ones, touching only those that differ."""

from __future__ import annotations

import subprocess

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.hostcard.mesh import live_peers, peer_commands

DOCUMENTATION = """
module: mesh_peers
short_description: Change peers of a running WireGuard interface; connections of the others are not cut
description:
  - C(wg set) for each peer that is missing or differs, C(remove) for each that is not described.
  - Not C(wg syncconf), which takes the private key away when the configuration does not carry it.
options:
  interface: {description: Name of the interface., type: str, required: true}
  peers: {description: "name, public_key, address, endpoint of each peer.", type: list, elements: dict, required: true}
  keepalive_s: {description: Seconds between keepalives., type: int, required: true}
author: [Gradferry]
"""


def main() -> None:
    module = AnsibleModule(
        {
            "interface": {"type": "str", "required": True},
            "peers": {"type": "list", "elements": "dict", "required": True},
            "keepalive_s": {"type": "int", "required": True},
        },
        supports_check_mode=True,
    )
    interface = module.params["interface"]
    commands = peer_commands(interface, module.params["peers"], live_peers(interface), module.params["keepalive_s"])
    for command in [] if module.check_mode else commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            module.fail_json(msg=f"{' '.join(command)}: {done.stderr.strip()}", commands=commands)
    module.exit_json(changed=bool(commands), commands=[" ".join(command) for command in commands])


if __name__ == "__main__":
    main()
