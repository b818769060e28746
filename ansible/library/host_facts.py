#!/usr/bin/python
"""Read in one go everything about a host that a role asks before it acts."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.hostcard import engine, files, gpu, mesh, network, software, system

DOCUMENTATION = """
module: host_facts
short_description: Everything about a host that a role of Gradferry asks, in one round trip
description:
  - Returns C(ansible_facts.gradferry). Reads only; never starts a service.
  - Roles skip their expensive modules (apt, systemd) where these facts show the described state already.
options:
  name: {description: Name of the host in the inventory., type: str, required: true}
  region: {description: Region of the host., type: str, default: ""}
  units: {description: systemd units whose state is asked., type: list, elements: str, default: []}
  files: {description: Glob patterns of files that are fingerprinted., type: list, elements: str, default: []}
  sysctls: {description: Glob patterns below /proc/sys., type: list, elements: str, default: []}
  sysfs_root: {description: Where GPUs are looked for., type: path, default: /sys}
  disk_path: {description: The file system that is measured., type: path, default: /var/lib}
  mesh_interface: {description: Interface of the mesh., type: str, default: gf0}
  mesh_public_key: {description: File with the public key of the mesh., type: path, default: /etc/wireguard/gf0.pub}
author: [Gradferry]
"""

LISTS = ("units", "files", "sysctls")


def card(params: dict) -> dict:
    """The fact card: plain values, nothing secret."""
    installed, held = software.packages()
    services = software.services(params["units"])
    settings = system.sysctls(params["sysctls"])
    return {
        "name": params["name"],
        "region": params["region"],
        **system.read(params["disk_path"]),
        **gpu.read(params["sysfs_root"]),
        "network": network.read(),
        "sysctls": settings,
        "bbr": "loaded" if system.has_bbr(settings) else system.kernel_part("tcp_bbr"),
        "fq": system.kernel_part("sch_fq"),
        "packages": installed,
        "held": held,
        "frozen": software.frozen(),
        "apt": software.apt(),
        "services": services,
        "files": files.watched(params["files"]),
        "watched": params["files"],
        "mesh": mesh.read(params["mesh_interface"], params["mesh_public_key"]),
        "firewall": mesh.firewall(),
        "docker": engine.read(installed, services.get("docker.service", {})),
        "gradferry_user": system.user("gradferry"),
    }


def main() -> None:
    options: dict = {name: {"type": "list", "elements": "str", "default": []} for name in LISTS}
    options |= {
        "name": {"type": "str", "required": True},
        "region": {"type": "str", "default": ""},
        "sysfs_root": {"type": "path", "default": "/sys"},
        "disk_path": {"type": "path", "default": "/var/lib"},
        "mesh_interface": {"type": "str", "default": "gf0"},
        "mesh_public_key": {"type": "path", "default": "/etc/wireguard/gf0.pub"},
    }
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    module.exit_json(changed=False, ansible_facts={"gradferry": card(module.params)})


if __name__ == "__main__":
    main()
