"""The caller's end of the control socket.

with Client(path) as wan:
    wan.fault("a>b", blocked=True)          # ends with the block, or with this process
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from .socket_path import short


class Client:
    """One connection. Raises ValueError for a request that the emulator refuses, ConnectionError when it is gone."""

    def __init__(self, path: Path) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short(path) as address:
            self.sock.connect(address)
        self.file = self.sock.makefile("rw")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()
        self.sock.close()

    def set(self, link: str, **changes: float | bool) -> None:
        """Change links matching `link` ("a>b", "a>*", "*") until they are changed again."""
        self._ask("set", link=link, **changes)

    def fault(self, link: str, *, for_s: float | None = None, **changes: float | bool) -> int:
        """The same until this connection ends, `unfault`, or for `for_s` seconds."""
        limit = {} if for_s is None else {"for_s": for_s}
        return int(self._ask("fault", link=link, **limit, **changes)["fault"])

    def unfault(self, fault: int) -> None:
        self._ask("unfault", fault=fault)

    def heal(self) -> None:
        """All links as the table has them."""
        self._ask("heal")

    def stats(self) -> dict[str, dict[str, Any]]:
        """Link -> counters and parameters in force."""
        return dict(self._ask("stats")["links"])

    def _ask(self, op: str, **request: Any) -> dict[str, Any]:
        self.file.write(json.dumps({"op": op, **request}) + "\n")
        self.file.flush()
        line = self.file.readline()
        if not line:
            raise ConnectionError("the WAN emulator is gone")
        reply: dict[str, Any] = json.loads(line)
        if not reply.pop("ok"):
            raise ValueError(reply["error"])
        return reply
