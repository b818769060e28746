"""The root file system that every image starts from: a registry's, or one made from the distribution's packages."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as PullTimeout
from pathlib import Path

from docker import DockerClient
from docker.errors import APIError

from tests.testbed.engine import Say, install
from tests.testbed.errors import BedError
from tests.testbed.image_build import has_image
from tests.testbed.labels import CLONE, ROLE

REGISTRY = ("registry-1.docker.io", 443)
REMEMBER_NO_S = 24 * 3600
PULL_S = 180
# minbase, and no documentation, translations or lists of them: what debian:<suite>-slim leaves out as well.
MMDEBSTRAP = (
    "--variant=minbase",
    "--include=python3,ca-certificates,tini",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    '--aptopt=Acquire::Languages "none"',
)


def rootfs(client: DockerClient, suite: str, cache: Path, clone_id: str, say: Say) -> str:
    """Tag of an image with Debian `suite`. Whichever way it came, later calls find the same one."""
    pulled = f"debian:{suite}-slim"
    made = f"gradferry/rootfs:{suite}-{_recipe_hash(suite)}"
    for tag in (made, pulled):
        if has_image(client, tag):
            return tag
    if _pull(client, pulled, cache / "no-registry", say):
        return pulled
    tar = cache / f"{made.split(':')[1]}.tar"
    if not tar.exists():
        _mmdebstrap(suite, tar, say)
    client.api.import_image(
        src=str(tar),
        repository=made.split(":")[0],
        tag=made.split(":")[1],
        changes=['CMD ["bash"]', f"LABEL {CLONE}={clone_id} {ROLE}=image"],
    )
    return made


def _pull(client: DockerClient, tag: str, no: Path, say: Say) -> bool:
    """Whether a registry gave the image. A "no" is remembered for a day, so that later runs do not ask again."""
    if no.exists() and time.time() - no.stat().st_mtime < REMEMBER_NO_S:
        return False
    if _registry_may_answer(client):
        say(f"pulling {tag}")
        repository, version = tag.split(":")
        pool = ThreadPoolExecutor(1)
        try:
            pool.submit(client.images.pull, repository, tag=version).result(timeout=PULL_S)
            return True
        except (APIError, PullTimeout):
            pass
        finally:
            pool.shutdown(wait=False)
    say("no image registry can be reached: Debian packages are taken instead")
    no.parent.mkdir(parents=True, exist_ok=True)
    no.touch()
    return False


def _registry_may_answer(client: DockerClient) -> bool:
    """A quick look, so that a machine without a registry does not wait; an engine with a mirror or proxy is asked."""
    info = client.info()
    if info.get("HttpsProxy") or (info.get("RegistryConfig") or {}).get("Mirrors"):
        return True
    try:
        socket.create_connection(REGISTRY, timeout=3).close()
    except OSError:
        return False
    return True


def _mmdebstrap(suite: str, tar: Path, say: Say) -> None:
    if not shutil.which("mmdebstrap"):
        if os.geteuid() != 0:
            raise BedError(
                f"No registry has debian:{suite}-slim, and mmdebstrap is not installed",
                "As root: apt-get install mmdebstrap debian-archive-keyring",
            )
        install(["mmdebstrap", "debian-archive-keyring"], say)
    say(f"making a Debian {suite} root file system from packages (mmdebstrap, about 40 s)")
    tar.parent.mkdir(parents=True, exist_ok=True)
    part = tar.with_name(f"{tar.stem}.{os.getpid()}.part.tar")
    # setsid: when it fails, mmdebstrap hangs up its whole process group, which would be ours.
    done = subprocess.run(["setsid", "-w", "mmdebstrap", *MMDEBSTRAP, suite, str(part)], capture_output=True, text=True)
    if done.returncode:
        part.unlink(missing_ok=True)
        raise BedError(
            f"mmdebstrap {suite} failed: {done.stderr.strip().splitlines()[-1:]}", "Is there a Debian mirror?"
        )
    part.rename(tar)


def _recipe_hash(suite: str) -> str:
    return hashlib.sha256("\0".join((suite, *MMDEBSTRAP)).encode()).hexdigest()[:12]
