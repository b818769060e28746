#!/usr/bin/python
"""Does every peer answer over the mesh, how fast, and how large may a packet be? All peers at the same time."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.hostcard.path import Ping, endpoint_host, largest_mtu

DOCUMENTATION = """
module: mesh_check
short_description: Ask every peer for an answer over the mesh and measure the MTU of the paths
description:
  - Fails with the names of the peers that did not answer in time. Changes nothing.
  - C(mtu) is what the narrowest path carries. A path whose far end does not answer pings is not counted.
options:
  peers: {description: "name, address, endpoint of each peer.", type: list, elements: dict, required: true}
  mtu: {description: MTU of the mesh now., type: int, required: true}
  ceiling: {description: Largest MTU to ask for., type: int, required: true}
  within_s: {description: Seconds in which a peer must answer., type: int, default: 20}
author: [Gradferry]
"""

TRIES = 3  # at 2 % loss a packet that fits is taken for too large once in 100 000 times


def answer(peer: dict, deadline_s: float) -> dict:
    """Round-trip time in ms over the mesh, None where the peer did not answer before the deadline."""
    while True:
        rtt = Ping(peer["address"]).once(timeout_s=2)
        if rtt is not None or time.monotonic() > deadline_s:
            return {"name": peer["name"], "rtt_ms": rtt}


def path_mtu(peer: dict, mtu: int, ceiling: int) -> int | None:
    """Largest mesh MTU that the path to the peer's endpoint carries unfragmented; None where it cannot be told."""
    if not peer.get("endpoint"):
        return None
    try:
        address = socket.getaddrinfo(endpoint_host(peer["endpoint"]), None)[0][4][0]
    except OSError:
        return None
    ping = Ping(address)
    return largest_mtu(lambda size: any(ping.carries(size) for _ in range(TRIES)), mtu, ceiling)


def refusal(silent: list, within_s: int) -> str:
    named = ", ".join(f"{p['name']} ({p['address']}, called at {p.get('endpoint') or 'none'})" for p in silent)
    return (
        f"no answer over the mesh within {within_s} s from {named}. "
        "Open the mesh's UDP port in the provider's firewall, or set mesh_endpoint to how that host is called."
    )


def main() -> None:
    module = AnsibleModule(
        {
            "peers": {"type": "list", "elements": "dict", "required": True},
            "mtu": {"type": "int", "required": True},
            "ceiling": {"type": "int", "required": True},
            "within_s": {"type": "int", "default": 20},
        },
        supports_check_mode=True,
    )
    peers, mtu, ceiling = (module.params[name] for name in ("peers", "mtu", "ceiling"))
    deadline_s = time.monotonic() + module.params["within_s"]
    with ThreadPoolExecutor(max_workers=2 * len(peers) or 1) as pool:
        answers = [pool.submit(answer, peer, deadline_s) for peer in peers]
        paths = [pool.submit(path_mtu, peer, mtu, ceiling) for peer in peers]
    seen = [{**a.result(), "path_mtu": p.result()} for a, p in zip(answers, paths, strict=True)]
    silent = [peer for peer, saw in zip(peers, seen, strict=True) if saw["rtt_ms"] is None]
    if silent:
        module.fail_json(msg=refusal(silent, module.params["within_s"]), peers=seen)
    known = [saw["path_mtu"] for saw in seen if saw["path_mtu"]]
    module.exit_json(changed=False, peers=seen, mtu=min(known) if known else mtu)


if __name__ == "__main__":
    main()
