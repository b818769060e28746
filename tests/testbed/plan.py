"""What a bed is asked to be, and what it became: values, saved so that another process can take it down."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["plain", "ready"]


@dataclass(frozen=True)
class Region:
    """A place with one host in it."""

    host: str
    region: str


THREE = (Region("ap-1", "ap"), Region("eu-1", "eu"), Region("na-1", "na"))


@dataclass(frozen=True)
class Links:
    """The emulated WAN. Round trips in ms by pair of regions; half of one is each direction's delay."""

    rtt_ms: dict[str, float] = field(default_factory=lambda: {"ap-eu": 180.0, "eu-na": 90.0, "ap-na": 160.0})
    control_rtt_ms: float = 150.0
    rate_mbit_s: float = 100.0

    def one_way_ms(self, a: str, b: str) -> float:
        """Delay from region `a` to region `b`; the control node's region is called "control"."""
        if "control" in (a, b):
            return self.control_rtt_ms / 2
        return self.rtt_ms.get(f"{a}-{b}", self.rtt_ms.get(f"{b}-{a}", 0.0)) / 2

    def sentence(self) -> str:
        pairs = ", ".join(f"{pair} {rtt:g} ms" for pair, rtt in self.rtt_ms.items())
        return f"{pairs} RTT; {self.rate_mbit_s:g} Mbit/s"


@dataclass(frozen=True)
class Plan:
    """A bed as asked for. `seed`: a volume that each host's inner Docker starts with a copy of."""

    name: str
    regions: tuple[Region, ...] = THREE
    image: Kind = "ready"
    links: Links = Links()
    seed: str | None = None


@dataclass(frozen=True)
class Placed:
    """Where a host of the bed is: names and addresses on the engine."""

    host: str
    region: str
    container: str
    network: str
    volume: str
    subnet: str
    address: str
    router: str
    mesh_address: str


@dataclass(frozen=True)
class State:
    """A bed as it stands, as kept in its folder."""

    name: str
    kind: Kind
    image: str
    seeded: bool
    links: Links
    hosts: tuple[Placed, ...]
    control: Placed
    variables: dict[str, str] = field(default_factory=dict)  # of every host, for the inventory

    def save(self, folder: Path) -> None:
        part = folder / ".bed.json.part"
        part.write_text(json.dumps(asdict(self), indent=2))
        part.rename(folder / "bed.json")


def load_state(folder: Path) -> State:
    values = json.loads((folder / "bed.json").read_text())
    values["links"] = Links(**values["links"])
    values["hosts"] = tuple(Placed(**host) for host in values["hosts"])
    values["control"] = Placed(**values["control"])
    return State(**values)
