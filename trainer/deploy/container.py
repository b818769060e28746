"""Arguments of `docker run` for a host's trainer. Pure: the unit's template only prints them.

The container gets what training needs and nothing else: host network (the mesh is an interface of the host), a root
that cannot be written, no capabilities and no way to gain any, a user without rights, bounds on memory and processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.config import Limits
from trainer.errors import HostError
from trainer.launch import CONFIG_FOLDER, STATE_FOLDER, Host

NAME = "gradferry-trainer"
USER = 10001  # also in the image (docker/trainer.Dockerfile) and on the host
PIDS = 4096
LOG_FILE_MB, LOG_FILES = 10, 3


@dataclass(frozen=True)
class Engine:
    """What the host's Docker offers for GPUs. cdi: devices by name; runtimes: names, "nvidia" among them or not."""

    cdi: bool = False
    runtimes: Sequence[str] = ()


def docker_arguments(host: Host, engine: Engine, limits: Limits, drain_s: int) -> tuple[str, ...]:
    """Everything between `docker run` and the image, one option an element. Raises HostError: GPUs cannot be had."""
    return (
        "--rm",
        f"--name={NAME}",
        "--network=host",
        "--read-only",
        "--tmpfs=/tmp:rw,exec,nosuid,nodev",  # exec: torch.compile builds its kernels there
        f"--user={USER}:{USER}",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        f"--pids-limit={PIDS}",
        "--shm-size=1g",  # loader workers hand batches over there
        *_bounds(limits),
        *_devices(host, engine),
        "--log-driver=json-file",
        f"--log-opt=max-size={LOG_FILE_MB}m",
        f"--log-opt=max-file={LOG_FILES}",
        f"--stop-timeout={drain_s}",
        f"--env-file={CONFIG_FOLDER}/trainer.env",
        # The folder, not its files: they are replaced by rename, and a bound file would stay the old one.
        f"--volume={CONFIG_FOLDER}:{CONFIG_FOLDER}:ro",
        f"--volume={STATE_FOLDER}:{STATE_FOLDER}:rw",
    )


def _bounds(limits: Limits) -> list[str]:
    bounds = [] if limits.cpus is None else [f"--cpus={limits.cpus:g}"]
    if limits.memory_gb is not None:
        megabytes = round(limits.memory_gb * 1024)
        bounds += [f"--memory={megabytes}m", f"--memory-swap={megabytes}m"]  # equal: swap would only hide the bound
    return bounds


def _devices(host: Host, engine: Engine) -> list[str]:
    """All GPUs; CUDA_VISIBLE_DEVICES in the environment says which of them are used."""
    if not host.gpus:
        return []
    memory = "--ulimit=memlock=-1:-1"  # batches wait for the GPU in pinned memory
    if engine.cdi:
        return [memory, "--device=nvidia.com/gpu=all"]
    if "nvidia" in engine.runtimes:
        return [memory, "--gpus=all"]
    raise HostError(
        f"{host.name}: has GPUs, but its Docker knows neither CDI nor the nvidia runtime",
        "Run playbooks/provision.yml, which installs the NVIDIA container toolkit",
    )
