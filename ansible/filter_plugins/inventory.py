"""What is wrong with an inventory, said before anything is touched. Pure: names and variables in, sentences out."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")
EXAMPLES = [ipaddress.ip_network(n) for n in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")]

Variables = Mapping[str, Any]


def inventory_problems(
    hosts: Sequence[str], variables: Mapping[str, Variables], subnet: str, port: Any, source: str = "inventory"
) -> list[str]:
    """One sentence a problem: the host, what was seen, what is allowed. Empty when the inventory can be used.

    `variables` maps every host of the group to its variables; `subnet` and `port` are the mesh's."""
    if not hosts:
        return [f"{source}: no host in the group [hosts]. Copy inventory.example.ini to inventory.ini and name yours."]
    network = _network(subnet)
    if network is None or network.num_addresses - 2 < len(hosts):
        return [f"mesh_subnet = {subnet!r}: must be an IPv4 network with room for {len(hosts)} hosts, as 10.88.0.0/24."]
    found = [] if _is_port(port) else [f"mesh_port = {port!r}: must be a number from 1 to 65535."]
    for host in hosts:
        found += [f"{source}: {host}: {problem}" for problem in _alone(host, variables[host], network)]
    return found + [f"{source}: {problem}" for problem in _together(hosts, variables)]


def _network(text: Any) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(str(text))
    except ValueError:
        return None


def _address(text: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(str(text).strip("[]"))
    except ValueError:
        return None


def _is_of_a_host(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, network: ipaddress.IPv4Network
) -> bool:
    """Without listing the network, which may have millions."""
    ends = (network.network_address, network.broadcast_address)
    return address is not None and address in network and address not in ends


def _is_port(value: Any) -> bool:
    return not isinstance(value, bool) and str(value).isdigit() and 1 <= int(value) <= 65535


def split_endpoint(endpoint: str, port: int) -> tuple[str, str]:
    """(host, port) of `host`, `host:port`, `[v6]:port` or a bare IPv6 address; the port is text as it was written."""
    if endpoint.startswith("["):
        host, _, rest = endpoint[1:].partition("]")
        return host, rest.lstrip(":") or str(port)
    if endpoint.count(":") == 1:
        host, _, own = endpoint.partition(":")
        return host, own
    return endpoint, str(port)


def _alone(host: str, about: Variables, network: ipaddress.IPv4Network) -> Iterator[str]:
    """Problems of one host by itself."""
    if not NAME.match(host):
        yield "the name must be a-z, 0-9 and `-`, at most 40 characters."
    if not str(about.get("region") or "").strip():
        yield "region is missing. Say where the host is, for example region=eu-central."
    address = _address(about.get("ansible_host", host))
    if address is not None and any(address in example for example in EXAMPLES if example.version == address.version):
        yield f"ansible_host = {address} is an address for examples. Write the address of your server."
    if not _is_port(about.get("ansible_port", 22)):
        yield f"ansible_port = {about['ansible_port']!r}: must be a number from 1 to 65535."
    yield from _mesh(about, network)
    yield from _money_and_devices(about)


def _mesh(about: Variables, network: ipaddress.IPv4Network) -> Iterator[str]:
    own = about.get("mesh_address")
    if own is not None and not _is_of_a_host(_address(own), network):
        yield f"mesh_address = {own!r}: must be an address inside mesh_subnet {network}, without a mask."
    endpoint = about.get("mesh_endpoint")
    if endpoint is not None and endpoint != "none":
        host, port = split_endpoint(str(endpoint), 1)
        if not re.match(r"^[A-Za-z0-9.:-]+$", host) or not _is_port(port):
            yield f"mesh_endpoint = {endpoint!r}: must be `address`, `address:port`, or `none` (cannot be called)."
    mtu = about.get("mesh_mtu")
    if mtu is not None and not (str(mtu).isdigit() and 1280 <= int(mtu) <= 9000):
        yield f"mesh_mtu = {mtu!r}: must be a number from 1280 to 9000. Leave it out and it is measured."


def visible_devices(value: Any) -> list[str]:
    """`0,2`, the tuple that an INI inventory makes of it, a single number, or UUIDs -> list of names."""
    if value is None or value == "":
        return []
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    return [str(part).strip() for part in parts]


def _money_and_devices(about: Variables) -> Iterator[str]:
    price = about.get("price_per_hour")
    if price is not None and not re.match(r"^\d+(\.\d+)?$", str(price)):
        yield f"price_per_hour = {price!r}: must be a number, as 0.79."
    devices = about.get("devices")
    if devices is not None and not (str(devices).isdigit() and 1 <= int(devices) <= 64):
        yield f"devices = {devices!r}: must be a number from 1 to 64. Leave it out and all GPUs are used."
        return
    visible = visible_devices(about.get("cuda_visible_devices"))
    if len(set(visible)) != len(visible) or "" in visible:
        yield f"cuda_visible_devices = {','.join(visible)!r}: a device is empty or named twice."
    elif visible and devices is not None and int(devices) != len(visible):
        yield f"devices = {devices}, but cuda_visible_devices names {len(visible)}: leave one of the two out."


def _together(hosts: Sequence[str], variables: Mapping[str, Variables]) -> Iterator[str]:
    """Problems between hosts: what must not be the same, and who cannot call whom."""
    ssh = {h: f"{variables[h].get('ansible_host', h)}:{variables[h].get('ansible_port', 22)}" for h in hosts}
    mesh = {h: str(variables[h]["mesh_address"]) for h in hosts if variables[h].get("mesh_address")}
    ends = {h: str(variables[h]["mesh_endpoint"]) for h in hosts if variables[h].get("mesh_endpoint")}
    hidden = sorted(h for h, end in ends.items() if end == "none")
    yield from _twice(ssh, "have one address, ansible_host = {}. Each host needs its own.")
    yield from _twice(mesh, "have one mesh_address = {}. Leave it out and each gets its own.")
    yield from _twice(
        {h: end for h, end in ends.items() if end != "none"}, "have one mesh_endpoint = {}. Give each its own port."
    )
    if len(hidden) > 1:
        yield f"{' and '.join(hidden)} cannot meet: both have mesh_endpoint = none. Forward a UDP port to one of them."


def _twice(values: Mapping[str, str], sentence: str) -> Iterator[str]:
    for value in sorted(set(values.values())):
        same = [host for host, other in values.items() if other == value]
        if len(same) > 1:
            yield f"{' and '.join(same)} {sentence.format(value)}"


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"inventory_problems": inventory_problems, "visible_devices": visible_devices}
