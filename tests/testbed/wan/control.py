"""The emulator's control socket: JSON lines. A fault lives as long as the connection that asked for it."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .socket_path import short
from .table import Table


class Control:
    """Requests {"op": "set"|"fault"|"unfault"|"heal"|"stats", ...}; replies {"ok": true, ...} or
    {"ok": false, "error": text}."""

    def __init__(self, table: Table, path: Path, kernel_drops: Callable[[], dict[str, int]]) -> None:
        self.table, self.path, self.kernel_drops = table, path, kernel_drops
        self.clients: dict[socket.socket, tuple[bytearray, set[int]]] = {}
        self.timers: dict[int, float] = {}
        self.serial = 0
        path.unlink(missing_ok=True)
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with short(path) as address:
            self.server.bind(address)
        os.chmod(path, 0o666)  # its folder is the bed owner's alone; the emulator may run as another user
        self.server.listen(16)

    def sockets(self) -> list[socket.socket]:
        return [self.server, *self.clients]

    def ready(self, sock: socket.socket) -> None:
        """`sock`, one of `sockets()`, can be read."""
        if sock is self.server:
            client, _ = sock.accept()
            client.setblocking(False)
            self.clients[client] = (bytearray(), set())
            return
        try:
            data = sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._forget(sock)
            return
        pending, faults = self.clients[sock]
        pending += data
        *lines, rest = bytes(pending).split(b"\n")
        pending[:] = rest
        for line in lines:
            self._answer(sock, line, faults)

    def tick(self, now: float) -> float:
        """End the faults whose time is over; when the next one ends, or a second from now."""
        for key in [key for key, end in self.timers.items() if end <= now]:
            del self.timers[key]
            self.table.unfault(key, "time over")
        return min(self.timers.values(), default=now + 1)

    def close(self) -> None:
        self.path.unlink(missing_ok=True)

    def _forget(self, sock: socket.socket) -> None:
        _, faults = self.clients.pop(sock)
        for key in faults:
            self.table.unfault(key, "client gone")
        sock.close()

    def _answer(self, sock: socket.socket, line: bytes, faults: set[int]) -> None:
        try:
            reply = {"ok": True, **self._do(json.loads(line), faults)}
        except Exception as error:  # a bad request must not stop the emulator
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        try:
            sock.send(json.dumps(reply).encode() + b"\n")
        except OSError:
            self._forget(sock)

    def _do(self, request: dict[str, Any], faults: set[int]) -> dict[str, Any]:
        match request.pop("op"):
            case "heal":
                self.table.heal()
            case "stats":
                drops = self.kernel_drops()
                links = self.table.links.items()
                return {"links": {name: link.stats() | {"kernel_dropped": drops.get(name, 0)} for name, link in links}}
            case "set":
                self.table.set(request.pop("link"), request)
            case "fault":
                return {"fault": self._fault(request, faults)}
            case "unfault":
                self.table.unfault(request["fault"], "asked")
            case op:
                raise ValueError(f"unknown op {op!r}")
        return {}

    def _fault(self, request: dict[str, Any], faults: set[int]) -> int:
        for_s, pattern = request.pop("for_s", None), request.pop("link")
        self.serial += 1
        self.table.fault(self.serial, pattern, request)
        faults.add(self.serial)
        if for_s is not None:
            self.timers[self.serial] = time.monotonic() + for_s
        return self.serial
