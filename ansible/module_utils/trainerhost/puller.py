"""Pull an image through the engine's socket, and note which layers had to travel."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ansible.module_utils.hostcard.engine import SOCKET
from ansible.module_utils.trainerhost.state import LABEL

SILENCE_S = 300.0  # a layer that sends nothing for so long is stuck


class PullFailed(Exception):
    """One line: what was pulled and what the engine said."""


class _Engine(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(SILENCE_S)
        self.sock.connect(SOCKET)


def request(method: str, path: str) -> tuple[int, bytes]:
    connection = _Engine("docker")
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise PullFailed(f"the Docker engine does not answer: {error}") from None
    finally:
        connection.close()


def pull(reference: str) -> list[str]:
    """Short digests of the layers that travelled. Raises PullFailed."""
    name, _, tag = reference.rpartition(":")
    code, body = request("POST", f"/images/create?fromImage={quote(name, safe='')}&tag={quote(tag, safe='')}")
    if code != 200:
        raise PullFailed(f"{reference}: {_message(body)}")
    lines = [json.loads(line) for line in body.splitlines() if line.strip()]
    for line in lines:
        if "error" in line:
            raise PullFailed(f"{reference}: {line['error']}")
    return sorted({line["id"] for line in lines if line.get("status") == "Pull complete"})


def check_label(reference: str, content: str) -> None:
    code, body = request("GET", f"/images/{quote(reference, safe='')}/json")
    if code != 200:
        raise PullFailed(f"{reference}: pulled, but the engine does not have it: {_message(body)}")
    found = (json.loads(body)["Config"].get("Labels") or {}).get(LABEL)
    if content and found != content:
        raise PullFailed(f"{reference}: its label {LABEL} is {found}, expected {content}")


def remove_older(keep: Iterable[str]) -> list[str]:
    """Remove our images that are not in `keep` and that no container uses; says which."""
    kept, removed = set(keep), []
    code, body = request("GET", f"/images/json?filters={quote(json.dumps({'label': [LABEL]}))}")
    for image in json.loads(body) if code == 200 else []:
        for tag in image.get("RepoTags") or []:
            if tag not in kept and request("DELETE", f"/images/{quote(tag, safe='')}")[0] == 200:
                removed.append(tag)
    return removed


def _message(body: bytes) -> Any:
    try:
        return json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        return body.decode("utf-8", "replace").strip()[:300]
