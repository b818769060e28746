"""What a host container may do: enough for systemd, an inner Docker and a tunnel device, found out once per engine.

cgroup v2 engines take `--privileged --cgroupns=private`. On cgroup v1 systemd needs the engine's cgroup tree bound in.
An engine that lacks a capability itself cannot give it, hence the last profile.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import APIError

from tests.testbed.engine import Say
from tests.testbed.errors import BedError, WaitedTooLong
from tests.testbed.labels import Owner
from tests.testbed.wait import wait_for

_LISTED = {
    "CapAdd": ["ALL"],
    "SecurityOpt": ["seccomp=unconfined", "apparmor=unconfined"],
    "MaskedPaths": [],  # these two are what the command line calls systempaths=unconfined
    "ReadonlyPaths": [],
    "Devices": [{"PathOnHost": "/dev/net/tun", "PathInContainer": "/dev/net/tun", "CgroupPermissions": "rwm"}],
}
_CGROUP_BIND = "/sys/fs/cgroup:/sys/fs/cgroup:rw"


@dataclass(frozen=True)
class Profile:
    """Rights of a host, as fields of the engine's HostConfig, and what is bound into it for them."""

    name: str
    host_config: dict[str, Any]
    binds: tuple[str, ...] = ()


PRIVILEGED = Profile("privileged", {"Privileged": True, "CgroupnsMode": "private"})
LISTED = Profile("listed", _LISTED, (_CGROUP_BIND,))
WITHOUT_RESOURCE = Profile("listed-without-sys-resource", _LISTED | {"CapDrop": ["SYS_RESOURCE"]}, (_CGROUP_BIND,))


def profile(client: DockerClient, image: str, cache: Path, owner: Owner, say: Say) -> Profile:
    """The first profile with which systemd comes up in `image`. Remembered per engine in `cache`."""
    info = client.info()
    v2 = info.get("CgroupVersion") == "2"
    candidates = [PRIVILEGED, LISTED, WITHOUT_RESOURCE] if v2 else [LISTED, WITHOUT_RESOURCE, PRIVILEGED]
    memory = cache / "privileges.json"
    engine = f"{info['ID']} {info['ServerVersion']} {info['KernelVersion']}"
    known = json.loads(memory.read_text()) if memory.exists() else {}
    for candidate in candidates:
        if known.get(engine) == candidate.name:
            return candidate
    say("trying out which rights a systemd container needs on this engine")
    seen = {}
    for candidate in candidates:
        if not (why := _refusal(client, image, candidate, owner)):
            memory.parent.mkdir(parents=True, exist_ok=True)
            part = memory.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(known | {engine: candidate.name}))
            part.rename(memory)
            return candidate
        seen[candidate.name] = why
    raise BedError(f"No way to run systemd in a container here: {seen}", "A rootful Docker on Linux is needed")


def _refusal(client: DockerClient, image: str, candidate: Profile, owner: Owner) -> str | None:
    """Why systemd does not come up with these rights; None if it does."""
    created = client.api.create_container(
        image, labels=owner.labels("probe"), host_config=host_config(candidate) | {"NetworkMode": "none"}
    )
    container = client.containers.get(created["Id"])
    try:
        container.start()
        wait_for(lambda: _is_up(container), "systemd", within_s=20)
    except (APIError, WaitedTooLong) as error:
        return str(getattr(error, "explanation", None) or error)
    finally:
        container.remove(force=True, v=True)
    return None


def _is_up(container: Any) -> bool:
    state = container.exec_run(["systemctl", "is-system-running"]).output.decode().strip()
    return state in ("running", "degraded")


def host_config(rights: Profile, binds: tuple[str, ...] = ()) -> dict[str, Any]:
    """The engine's HostConfig of a container with systemd in it; `binds` as in `docker run -v`."""
    return rights.host_config | {
        "Binds": [*rights.binds, *binds],
        "Tmpfs": {"/run": "", "/run/lock": "", "/tmp": "exec"},
    }
