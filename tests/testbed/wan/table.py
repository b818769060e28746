"""All links between nodes: the table's own values, then what was `set`, then live faults on top. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from .link import Link, Parameters, Value, checked

Log = Callable[..., None]


class Table:
    """Links by name, "a>b" for packets from node a to node b.

    `config`: {"nodes": {"a": "10.0.0.1" or [addresses]}, "default": {parameters}, "links": {"a>b" or pattern: {...}}}.
    """

    def __init__(self, config: Mapping[str, Any], log: Log, rng: Random) -> None:
        self.log = log
        self.nodes = {node: [a] if isinstance(a, str) else list(a) for node, a in config["nodes"].items()}
        default = Parameters().with_changes(config.get("default", {}))
        self.base = {f"{a}>{b}": default for a in self.nodes for b in self.nodes if a != b}
        for pattern, changes in config.get("links", {}).items():
            for name in self.match(pattern):
                self.base[name] = self.base[name].with_changes(changes)
        self.now = dict(self.base)
        self.faults: dict[int, tuple[list[str], dict[str, Value]]] = {}
        self.links = {name: Link(name, parameters, rng) for name, parameters in self.base.items()}

    def match(self, pattern: str) -> list[str]:
        """Links that `pattern` ("a>b", "a>*", "*") names. Raises ValueError if there is none."""
        found = [name for name in self.base if fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(f"no link matches {pattern!r}; links: {', '.join(self.base)}")
        return found

    def set(self, pattern: str, changes: Mapping[str, object]) -> None:
        """Until changed again, or `heal`."""
        names = self.match(pattern)
        for name in names:
            self.now[name] = self.now[name].with_changes(changes)
        self._apply(names)
        self.log(event="set", link=pattern, **changes)

    def fault(self, key: int, pattern: str, changes: Mapping[str, object]) -> None:
        """Until `unfault(key)`. Faults stack; a later one wins where both say something."""
        names = self.match(pattern)
        self.faults[key] = names, checked(changes)
        self._apply(names)
        self.log(event="fault", fault=key, link=pattern, **changes)

    def unfault(self, key: int, why: str) -> None:
        """End a fault; one that has ended already is left alone."""
        if key in self.faults:
            names, _ = self.faults.pop(key)
            self._apply(names)
            self.log(event="fault_end", fault=key, why=why)

    def heal(self) -> None:
        """Back to the table's own values; all faults end."""
        self.faults.clear()
        self.now = dict(self.base)
        self._apply(list(self.base))
        self.log(event="heal")

    def described(self) -> dict[str, dict[str, Value]]:
        return {name: asdict(parameters) for name, parameters in self.base.items()}

    def _apply(self, names: list[str]) -> None:
        for name in names:
            parameters = self.now[name]
            for concerned, changes in self.faults.values():
                if name in concerned:
                    parameters = parameters.with_changes(changes)
            self.links[name].set(parameters)
