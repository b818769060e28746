"""The Docker engine: which one, how it is set, what it holds. Asked over its socket, which is faster than its CLI."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.hostcard.command import find, text_of

SOCKET = "/var/run/docker.sock"
CONFIG = "/etc/docker/daemon.json"
PACKAGES = {"docker.io": "distribution", "docker-ce": "docker", "podman-docker": "podman"}


class _Socket(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(15)
        self.sock.connect(SOCKET)


def ask(path: str) -> Any:
    """Parsed answer of the engine to GET `path`; None where it does not answer."""
    connection = _Socket("docker")
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def kind(installed: Mapping[str, str]) -> str:
    """`distribution`, `docker` (Docker's own packages), `snap`, `podman`, `other`, or `none`."""
    if os.path.isdir("/snap/docker"):
        return "snap"
    for package, name in PACKAGES.items():
        if package in installed:
            return name
    return "other" if find("dockerd") else "none"


def settings() -> dict[str, Any] | None:
    """Content of daemon.json: {} where there is none, None where it is not a JSON object."""
    try:
        parsed = json.loads(text_of(CONFIG) or "{}")
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def process_start_s(pid: int) -> float | None:
    """When process `pid` started, in seconds since the epoch."""
    stat, boot = text_of(f"/proc/{pid}/stat"), text_of("/proc/stat") or ""
    times = [line.split()[1] for line in boot.splitlines() if line.startswith("btime ")]
    if not stat or not times:
        return None
    ticks = int(stat.rpartition(")")[2].split()[19])
    return int(times[0]) + ticks / os.sysconf("SC_CLK_TCK")


def config_pending(pid: int) -> bool:
    """True where daemon.json was written after the running engine had started, so that it has not read it."""
    started = process_start_s(pid) if pid else None
    if started is None or not os.path.exists(CONFIG):
        return False
    return os.stat(CONFIG).st_mtime > started + 1.0  # the kernel counts the start in whole seconds of boot time


def images(answer: Any) -> dict[str, dict[str, Any]]:
    """Reference (`name:tag` or `name@digest`) -> id, labels, size in bytes."""
    found = {}
    for image in answer or []:
        entry = {"id": image["Id"], "labels": image.get("Labels") or {}, "size": image.get("Size", 0)}
        for reference in (image.get("RepoTags") or []) + (image.get("RepoDigests") or []):
            found[reference] = entry
    return found


def containers(answer: Any) -> dict[str, dict[str, str]]:
    return {
        c["Names"][0].lstrip("/"): {"state": c["State"], "image": c["Image"], "image_id": c["ImageID"]}
        for c in answer or []
        if c.get("Names")
    }


def read(installed: Mapping[str, str], unit: Mapping[str, Any]) -> dict[str, Any]:
    """`unit` is the state of docker.service: an inactive engine is not asked, because asking would start it."""
    running = unit.get("active") == "active"
    info = (ask("/info") if running else None) or {}
    return {
        "kind": kind(installed),
        "version": info.get("ServerVersion"),
        "root": info.get("DockerRootDir"),
        "storage_driver": info.get("Driver"),
        "cgroup_version": info.get("CgroupVersion"),
        "live_restore": info.get("LiveRestoreEnabled", False),
        "runtimes": sorted(info.get("Runtimes") or {}),
        "cdi": bool(info.get("CDISpecDirs")),
        "config": settings(),
        "config_pending": running and config_pending(int(unit.get("pid") or 0)),
        "images": images(ask("/images/json")) if running else {},
        "containers": containers(ask("/containers/json?all=1")) if running else {},
    }
