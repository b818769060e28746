"""Addresses, routes, MTU and the ports on which SSH reaches a host."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from ansible.module_utils.hostcard.command import output_of, text_of

# Networks on these are made by the engine or by us: they must not count as taken when we choose networks.
OWN_INTERFACES = re.compile(r"^(docker0|br-[0-9a-f]{12}|veth.*|gf\d+)$")


def _json(argv: list[str]) -> list[dict[str, Any]]:
    return json.loads(output_of(argv) or "[]")


def connection_port(environments: list[str]) -> int | None:
    """Server port of SSH_CONNECTION ("client port server port"), first of the environments that has one."""
    for environment in environments:
        for entry in environment.split("\0"):
            if entry.startswith("SSH_CONNECTION=") and len(entry.split()) == 4:
                return int(entry.split()[3])
    return None


def ancestor_environments() -> list[str]:
    """Environments of this process and its parents: sudo drops SSH_CONNECTION, the shell above it has it."""
    found, pid = [], os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as stream:
                found.append(stream.read())
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
                pid = int(stream.read().rpartition(")")[2].split()[1])
        except OSError:
            break
    return found


def ssh_ports() -> list[int]:
    """Ports on which this host takes SSH: of this very connection, of sshd's settings, of a socket unit."""
    ports = {connection_port(ancestor_environments())}
    for line in (output_of(["sshd", "-T"]) or "").splitlines():
        if line.startswith("port "):
            ports.add(int(line.split()[1]))
    listen = output_of(["systemctl", "show", "ssh.socket", "--property=ActiveState", "--property=Listen"]) or ""
    if "ActiveState=active" in listen:
        ports.update(int(port) for port in re.findall(r"Listen=\S*?(\d+) \(Stream\)", listen))
    return sorted(port for port in ports if port)


def default_route() -> dict[str, Any]:
    routes = _json(["ip", "-j", "route", "show", "default"]) or _json(["ip", "-j", "-6", "route", "show", "default"])
    return routes[0] if routes else {}


def taken_networks(addresses: list[dict[str, Any]], routes: list[dict[str, Any]]) -> list[str]:
    """IPv4 networks that this host already uses, in CIDR form, those of the engine and the mesh left out."""
    taken = {
        f"{entry['local']}/{entry['prefixlen']}"
        for link in addresses
        if not OWN_INTERFACES.match(link.get("ifname", ""))
        for entry in link.get("addr_info", [])
        if entry.get("family") == "inet"
    }
    taken.update(
        route["dst"]
        for route in routes
        if route.get("dst") != "default" and not OWN_INTERFACES.match(route.get("dev", ""))
    )
    return sorted(taken)


def read() -> dict[str, Any]:
    links = _json(["ip", "-j", "addr", "show"])
    interface = default_route().get("dev", "")
    mtu = text_of(f"/sys/class/net/{interface}/mtu") if interface else None
    return {
        "interface": interface,
        "mtu": int(mtu or 0),
        "addresses": {
            link["ifname"]: [f"{a['local']}/{a['prefixlen']}" for a in link.get("addr_info", [])] for link in links
        },
        "taken": taken_networks(links, _json(["ip", "-j", "route", "show"])),
        "ssh_ports": ssh_ports(),
    }
