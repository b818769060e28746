"""Which addresses a bed takes, so that beds side by side never meet. Pure: what is in use comes in as an argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from random import Random

POOL = IPv4Network("10.192.0.0/10")  # away from Docker's own 172.16/12 and from the mesh's default 10.88.0.0/24


@dataclass(frozen=True)
class Site:
    """One region's network: gateway .1 is the engine's, .2 the WAN router, .10 the host."""

    network: IPv4Network

    @property
    def gateway(self) -> IPv4Address:
        return self.network[1]

    @property
    def router(self) -> IPv4Address:
        return self.network[2]

    @property
    def host(self) -> IPv4Address:
        return self.network[10]


def free_sites(used: Iterable[IPv4Network], rng: Random) -> Iterator[Site]:
    """Sites of /24 that overlap nothing in `used`, in an order drawn from `rng`.

    The order differs between beds, so that two that start at once seldom ask the engine for the same one.
    """
    taken = list(used)
    numbers = list(range(2 ** (24 - POOL.prefixlen)))
    rng.shuffle(numbers)
    for number in numbers:
        network = IPv4Network((int(POOL.network_address) + (number << 8), 24))
        if not any(network.overlaps(other) for other in taken):
            yield Site(network)


def routed_networks(proc_net_route: str) -> list[IPv4Network]:
    """The networks in the text of /proc/net/route, but for the default route."""
    found = []
    for line in proc_net_route.splitlines()[1:]:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[i]), "little") for i in (1, 7))
        if mask:
            found.append(IPv4Network((destination & mask, mask.bit_count())))
    return found
