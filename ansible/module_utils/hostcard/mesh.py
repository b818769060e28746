"""Our end of the WireGuard mesh and our firewall table, as they are in the kernel now."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.module_utils.hostcard.command import output_of, text_of
from ansible.module_utils.hostcard.system import kernel_part

REVISION = re.compile(r'comment "gradferry ([0-9a-f]{12})"')


def parse_dump(text: str, now_s: float) -> dict[str, Any]:
    """Public key, port and peers of `wg show IF dump`. The private key in its first field is dropped here."""
    lines = [line.split("\t") for line in text.splitlines()]
    if not lines or len(lines[0]) < 4:
        return {"live_key": None, "port": None, "peers": {}}
    peers = {}
    for public, _, endpoint, allowed, handshake, _, _, keepalive in (line for line in lines[1:] if len(line) == 8):
        peers[public] = {
            "endpoint": None if endpoint == "(none)" else endpoint,
            "allowed_ips": sorted(a for a in allowed.split(",") if a != "(none)"),
            "keepalive_s": 0 if keepalive == "off" else int(keepalive),
            "handshake_age_s": int(now_s) - int(handshake) if int(handshake) else None,
        }
    return {"live_key": lines[0][1], "port": int(lines[0][2]), "peers": peers}


def live_peers(interface: str) -> dict[str, dict[str, Any]]:
    return parse_dump(output_of(["wg", "show", interface, "dump"]) or "", time.time())["peers"]


def peer_commands(
    interface: str, wanted: Sequence[Mapping[str, Any]], live: Mapping[str, Mapping[str, Any]], keepalive_s: int
) -> list[list[str]]:
    """`wg set` commands that turn the live peers into the wanted ones; a peer that is as wanted is not named.

    A removal comes first: its address may be another's new one."""
    keys = {peer["public_key"] for peer in wanted}
    commands = [["wg", "set", interface, "peer", key, "remove"] for key in sorted(live) if key not in keys]
    for peer in wanted:
        seen, allowed = live.get(peer["public_key"], {}), f"{peer['address']}/32"
        change = [] if seen.get("allowed_ips") == [allowed] else ["allowed-ips", allowed]
        if seen.get("keepalive_s") != keepalive_s:
            change += ["persistent-keepalive", str(keepalive_s)]
        if peer.get("endpoint") and seen.get("endpoint") != peer["endpoint"] and is_silent(seen):
            change += ["endpoint", peer["endpoint"]]
        if change:
            commands.append(["wg", "set", interface, "peer", peer["public_key"], *change])
    return commands


def is_silent(seen: Mapping[str, Any]) -> bool:
    """No handshake within WireGuard's own limit. A peer that answers elsewhere has roamed and is left there."""
    age = seen.get("handshake_age_s")
    return age is None or age > 180


def read(interface: str, public_key_path: str) -> dict[str, Any]:
    """`public_key` is what the key file says; `live_key` what the running interface uses."""
    private_key_path = os.path.splitext(public_key_path)[0] + ".key"
    up = os.path.isdir(f"/sys/class/net/{interface}")
    dump = output_of(["wg", "show", interface, "dump"]) if up else None
    return {
        "interface": interface,
        "up": up,
        "mtu": int(text_of(f"/sys/class/net/{interface}/mtu") or 0) if up else None,
        "public_key": text_of(public_key_path) if os.path.exists(private_key_path) else None,
        "kernel_module": kernel_part("wireguard"),
        "tun": os.path.exists("/dev/net/tun"),
        **parse_dump(dump or "", time.time()),
    }


def firewall() -> dict[str, Any]:
    """Revision of our table in the kernel, None where it is not loaded. It is a comment on its first rule."""
    listed = output_of(["nft", "list", "table", "inet", "gradferry"])
    match = REVISION.search(listed or "")
    return {"revision": match.group(1) if match else None}
