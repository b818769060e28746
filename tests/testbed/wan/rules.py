"""The packet filter's rules: one per ordered pair of addresses. iptables, as kernels without nft queues have that."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

CHAIN = "WANEMU"
TOOLS = ("iptables", "ip6tables")


class Rules:
    """`queues`: link name "a>b" -> queue number; `nodes`: node -> its addresses."""

    def __init__(self, nodes: Mapping[str, list[str]], queues: Mapping[str, int], hook: str) -> None:
        self.nodes, self.queues, self.hook = nodes, queues, hook

    def install(self) -> None:
        """Packets between nodes go to their queues. Should we die, they flow again (--queue-bypass)."""
        self.remove()
        made = set()
        for link, queue in self.queues.items():
            for source, target in self._pairs(link):
                tool = TOOLS[1] if ":" in source else TOOLS[0]
                if tool not in made:
                    _run(tool, "-N", CHAIN)
                    _run(tool, "-I", self.hook, "-j", CHAIN)
                    made.add(tool)
                verdict = ("-j", "NFQUEUE", "--queue-num", str(queue), "--queue-bypass")
                _run(tool, "-A", CHAIN, "-s", source, "-d", target, *verdict)

    def remove(self) -> None:
        """Also what an emulator that was killed has left."""
        for tool in TOOLS:
            for command in (("-D", self.hook, "-j", CHAIN), ("-F", CHAIN), ("-X", CHAIN)):
                _run(tool, *command, check=False)

    def _pairs(self, link: str) -> list[tuple[str, str]]:
        a, b = link.split(">")
        return [(s, t) for s in self.nodes[a] for t in self.nodes[b] if (":" in s) == (":" in t)]


def _run(tool: str, *arguments: str, check: bool = True) -> None:
    subprocess.run([tool, "-w", "-t", "mangle", *arguments], check=check, capture_output=True)
