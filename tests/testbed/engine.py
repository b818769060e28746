"""A Docker engine: the running one as it is; none and root: the distribution's, installed and started."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import docker
from docker import DockerClient
from docker.errors import DockerException

from tests.testbed.errors import BedError
from tests.testbed.wait import wait_for

Say = Callable[[str], None]
# Left behind by an engine that was killed; if the number is some other process's by now, a new engine does not start.
PID_FILES = {Path("/var/run/docker.pid"): "dockerd", Path("/var/run/docker/containerd/containerd.pid"): "containerd"}


def running() -> DockerClient | None:
    """A client of the engine that runs; None where there is none. For taking things away, which needs no new engine."""
    try:
        return _reach()
    except DockerException:
        return None


def connect(log_folder: Path, say: Say) -> DockerClient:
    """A client of a running engine. Raises BedError with what to do where there is none and none can be started."""
    try:
        return _reach()
    except DockerException as error:
        seen = str(error)
    if "Permission denied" in seen or "PermissionError" in seen:
        raise BedError(
            "Docker runs, but this user may not use it",
            "As root: usermod -aG docker $USER, then log in again",
        )
    if os.environ.get("DOCKER_HOST"):
        raise BedError(f"No Docker engine answers at DOCKER_HOST={os.environ['DOCKER_HOST']}", "Start it, or unset it")
    if os.geteuid() != 0:
        raise BedError("No Docker engine runs", "As root: apt-get install docker.io && usermod -aG docker $USER")
    if not shutil.which("dockerd"):
        install(["docker.io", "iptables"], say)
    _start(log_folder, say)
    return wait_for(_reach, "Docker engine answers", within_s=60)


def install(packages: list[str], say: Say) -> None:
    """Install packages of the distribution; the caller is root."""
    say(f"installing {' '.join(packages)} from the distribution")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages],
    ):
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise BedError(f"{' '.join(command)} failed: {done.stderr.strip().splitlines()[-1:]}", "Run it by hand")


def _reach() -> DockerClient:
    client = docker.from_env(timeout=600)
    client.ping()
    return client


def _start(log_folder: Path, say: Say) -> None:
    """By systemd where it runs; else as a process of its own that outlives us."""
    if Path("/run/systemd/system").is_dir():
        say("starting the Docker engine (systemctl start docker)")
        if subprocess.run(["systemctl", "start", "docker"], stderr=subprocess.DEVNULL).returncode:
            raise BedError("systemctl start docker failed", "See why: journalctl -u docker -n 20")
        return
    for pid_file, program in PID_FILES.items():
        if not _runs(pid_file, program):
            pid_file.unlink(missing_ok=True)
    log_folder.mkdir(parents=True, exist_ok=True)
    log = log_folder / "dockerd.log"
    say(f"starting the Docker engine (dockerd, log in {log})")
    with log.open("ab") as file:
        subprocess.Popen(["dockerd"], stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)


def _runs(pid_file: Path, program: str) -> bool:
    try:
        return Path(f"/proc/{int(pid_file.read_text())}/comm").read_text().strip() == program
    except (OSError, ValueError):
        return False
