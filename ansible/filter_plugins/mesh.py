"""Who has which address on the mesh and how it is called; which networks are free; what a live peer lacks. Pure."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Three times the keepalive of 25 s, then WireGuard's own limit of 180 s: a peer that is silent for longer is not there.
SILENT_AFTER_S = 180


def mesh_plan(
    hosts: Sequence[str], variables: Mapping[str, Mapping[str, Any]], subnet: str, port: int
) -> dict[str, dict[str, Any]]:
    """Host -> address on the mesh, endpoint (`host:port`, None where the host cannot be called), region.

    An address follows from the host's name, not from its place in the inventory: who adds a host does not move the
    others. Where two names want one address, the later in the inventory takes the next free one."""
    given = {h: str(variables[h]["mesh_address"]) for h in hosts if variables[h].get("mesh_address")}
    taken = set(given.values())
    plan = {}
    for host in hosts:
        address = given.get(host) or next(a for a in _wishes(host, subnet) if a not in taken)
        taken.add(address)
        plan[host] = {
            "name": host,
            "address": address,
            "endpoint": _endpoint(host, variables[host], port),
            "region": str(variables[host].get("region", "")),
        }
    return plan


def _wishes(host: str, subnet: str) -> Iterator[str]:
    """Addresses of the subnet, from the one that the name chooses on. Large subnets are not listed."""
    network = ipaddress.IPv4Network(subnet)
    size = network.num_addresses - 2
    start = int.from_bytes(hashlib.sha256(host.encode()).digest()[:8], "big") % size
    for step in range(size):
        yield str(network.network_address + 1 + (start + step) % size)


def _endpoint(host: str, about: Mapping[str, Any], port: int) -> str | None:
    endpoint = str(about.get("mesh_endpoint") or about.get("ansible_host") or host)
    if endpoint == "none":
        return None
    if endpoint.startswith("["):
        return endpoint if "]:" in endpoint else f"{endpoint}:{port}"
    if endpoint.count(":") > 1:
        return f"[{endpoint}]:{port}"
    return endpoint if ":" in endpoint else f"{endpoint}:{port}"


def mesh_keys(
    variables: Mapping[str, Mapping[str, Any]],
    plan: Mapping[str, Mapping[str, Any]],
    live: Mapping[str, Mapping[str, Any]],
) -> dict[str, str | None]:
    """Host -> public key: made in this run, else read in this run, else the one that `live` has for its address."""
    by_address = {ip: key for key, peer in live.items() for ip in peer["allowed_ips"]}
    return {host: _own_key(variables[host]) or by_address.get(f"{plan[host]['address']}/32") for host in plan}


def _own_key(about: Mapping[str, Any]) -> str | None:
    made = (about.get("wireguard_mesh_made") or {}).get("public_key")
    return made or _mesh_facts(about).get("public_key")


def _mesh_facts(about: Mapping[str, Any]) -> Mapping[str, Any]:
    return ((about.get("ansible_facts") or {}).get("gradferry") or {}).get("mesh") or {}


def mesh_members(variables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Hosts that were read in this run and whose interface is up."""
    return [host for host, about in variables.items() if _mesh_facts(about).get("up")]


def mesh_peers(plan: Mapping[str, Mapping[str, Any]], me: str, keys: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """The peers of `me` whose public key is known, in the order of the inventory."""
    return [{**peer, "public_key": keys[name]} for name, peer in plan.items() if name != me and keys.get(name)]


def stale_peers(
    wanted: Sequence[Mapping[str, Any]], live: Mapping[str, Mapping[str, Any]], keepalive_s: int
) -> list[str]:
    """Public keys of peers that the running interface lacks, has too many, or calls at a wrong place.

    A peer that roamed (its endpoint is not the configured one, but it answers) is not stale."""
    keys = {peer["public_key"] for peer in wanted}
    stale = sorted(key for key in live if key not in keys)
    for peer in wanted:
        seen = live.get(peer["public_key"])
        if (
            seen is None
            or seen["allowed_ips"] != [f"{peer['address']}/32"]
            or seen["keepalive_s"] != int(keepalive_s)
            or _calls_wrongly(peer, seen)
        ):
            stale.append(peer["public_key"])
    return stale


def _calls_wrongly(peer: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    age = seen["handshake_age_s"]
    silent = age is None or age > SILENT_AFTER_S
    return bool(peer["endpoint"]) and silent and seen["endpoint"] != peer["endpoint"]


def engine_networks(candidates: Sequence[str], taken: Sequence[str], size: int = 24) -> dict[str, Any]:
    """`bip` and `default-address-pools` for the engine: the first candidate that meets none of the taken networks.

    Raises ValueError where all of them are taken."""
    others = [ipaddress.ip_network(network, strict=False) for network in taken]
    for candidate in candidates:
        network = ipaddress.IPv4Network(candidate)
        if not any(other.version == 4 and network.overlaps(other) for other in others):
            bridge = next(network.subnets(new_prefix=size))
            return {
                "bip": f"{bridge.network_address + 1}/{size}",
                "default-address-pools": [{"base": str(network), "size": size}],
            }
    raise ValueError(f"no free network for Docker: all of {', '.join(candidates)} meet {', '.join(taken)}")


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "mesh_plan": mesh_plan,
            "mesh_keys": mesh_keys,
            "mesh_members": mesh_members,
            "mesh_peers": mesh_peers,
            "stale_peers": stale_peers,
            "engine_networks": engine_networks,
        }
