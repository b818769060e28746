"""Hosts + run -> what each host starts. Pure: templates only print what is decided here.

A host with one device runs one plain process with its rank in the environment; a host with several runs torchrun, which
starts one process a device. In ddp every device is a replica. Addresses and the interface are always explicit: what a
rendezvous would find out by itself is too often the address of a Docker bridge.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.batching import batch_text, check_relation
from trainer.config import Data, Run, revision
from trainer.errors import ConfigError

MASTER_PORT = 29500
MESH_INTERFACE = "gf0"
CONFIG_FOLDER = "/etc/gradferry"
STATE_FOLDER = "/var/lib/gradferry"

# What may be written without a dot behind Ansible's `-e`; everything else by its dotted name.
SHORT = {name: f"accumulation.{name}" for name in ("accum_steps", "micro_batch", "global_batch")}
TOP = ("seed", "strategy", "epochs", "max_steps", "clip_grad_norm", "amp", "precision", "ema_decay")
_SECTIONS = [name for name, value in Run().model_dump().items() if isinstance(value, dict)]


@dataclass(frozen=True)
class Host:
    """A host as the inventory describes it. `devices`: GPUs it trains on, or 1 for a CPU host."""

    name: str
    region: str
    mesh_address: str
    devices: int = 1
    gpus: bool = False
    cuda_visible_devices: str | None = None


@dataclass(frozen=True)
class Launch:
    """What one host starts."""

    host: Host
    run_name: str
    strategy: str
    first_rank: int
    processes: int
    world_size: int
    environment: Mapping[str, str]
    argv: tuple[str, ...]
    batch: str


def strategy_of(run: Run, replicas: int) -> str:
    """`auto` resolved: ddp where there are several replicas, else single."""
    if run.strategy == "auto":
        return "ddp" if replicas > 1 else "single"
    if run.strategy not in ("ddp", "fleet") and replicas > 1:
        raise ConfigError(
            f"strategy = {run.strategy} trains in one process, the inventory has {replicas} devices",
            "Use strategy: ddp or fleet (or auto), or an inventory with one host and one device",
        )
    return run.strategy


def replicas_of(run: Run, hosts: Sequence[Host]) -> int:
    """Replicas over all hosts. `dp` gives one host's devices to one process, which is one replica; in `fleet` a host is
    one."""
    if run.strategy == "fleet":
        return len(hosts)
    if run.strategy == "dp" and len(hosts) == 1:
        return 1
    return sum(host.devices for host in hosts)


def launches(run: Run, hosts: Sequence[Host], *, mesh_interface: str = MESH_INTERFACE) -> dict[str, Launch]:
    """Host name -> what it starts. Ranks follow the inventory. Raises ConfigError if run and hosts do not fit."""
    if not hosts:
        raise ConfigError("inventory: no hosts", "List at least one host under [hosts]")
    replicas = replicas_of(run, hosts)
    strategy = strategy_of(run, replicas)
    check_relation(run.accumulation, replicas)
    found: dict[str, Launch] = {}
    rank = 0
    for host in hosts:
        processes = host.devices if strategy == "ddp" else 1
        environment = _environment(run, host, strategy, rank, replicas, hosts[0].mesh_address, mesh_interface)
        argv = _argv(host, processes, len(hosts), list(found), hosts[0].mesh_address)
        found[host.name] = Launch(
            host,
            run.name,
            strategy,
            rank,
            processes,
            replicas,
            environment,
            argv,
            batch_text(run.accumulation, replicas),
        )
        rank += processes
    return found


def run_json(run: Run, hosts: Sequence[Host]) -> str:
    """The text of a host's run.json: the desired state that a running trainer watches."""
    shown = ("name", "region", "mesh_address", "devices")
    described = [{name: getattr(host, name) for name in shown} for host in hosts]
    document = {"run": run.model_dump(mode="json"), "revision": revision(run), "hosts": described}
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def host_run(run: Run, data_digest: str) -> Run:
    """The run as hosts have it: data lies in their state folder under a name with the first digits of its index's
    sha256, so other data is another path and never replaces what a running trainer reads. Nothing is packed there."""
    name = run.data.path.rstrip("/").rsplit("/", 1)[-1]
    data = Data(path=f"{STATE_FOLDER}/data/{name}-{data_digest[:12]}", pack=None)
    return run.model_copy(update={"data": data})


def overrides_of(extra: Mapping[str, Any]) -> dict[str, object]:
    """The fields of a run among Ansible's extra variables: short names of `SHORT`, those of `TOP`, or dotted ones.

    Other names are variables of the playbooks. One that is nearly a short name, or a whole section, is a slip:
    ConfigError.
    """
    overrides: dict[str, object] = {}
    for name, value in extra.items():
        if (
            name in SHORT or name in TOP or "." in name
        ):  # no variable of a playbook has a dot: config says what is wrong with it
            overrides[SHORT.get(name, name)] = _typed(value)
        elif isinstance(value, Mapping) and name in _SECTIONS:
            what = f"command line  {name} is a section of the run, given as a whole"
            raise ConfigError(
                what, f"Give its fields by their dotted names, such as {name}.{next(iter(value), 'FIELD')}"
            )
        elif near := difflib.get_close_matches(name, SHORT, n=1, cutoff=0.8):
            raise ConfigError(f"command line  {name} is not a setting", f"Did you mean `{near[0]}`?")
    return overrides


def _environment(
    run: Run, host: Host, strategy: str, rank: int, world: int, master: str, interface: str
) -> dict[str, str]:
    environment = {"OMP_NUM_THREADS": str(run.limits.threads)}
    if host.cuda_visible_devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = host.cuda_visible_devices
    if strategy != "ddp":
        return environment
    environment |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": interface}
    if host.devices == 1:
        environment |= {
            "RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": master,
            "MASTER_PORT": str(MASTER_PORT),
        }
    return environment


def _argv(host: Host, processes: int, nodes: int, before: list[str], master: str) -> tuple[str, ...]:
    train = ("train", f"{CONFIG_FOLDER}/run.json", "--state", STATE_FOLDER, "--host", host.name)
    if processes == 1:
        return ("gradferry", *train)
    return (
        "torchrun",
        f"--nnodes={nodes}",
        f"--nproc-per-node={processes}",
        f"--node-rank={len(before)}",
        f"--master-addr={master}",
        f"--master-port={MASTER_PORT}",
        f"--local-addr={host.mesh_address}",
        "--max-restarts=0",
        "--no-python",
        "gradferry",
        *train,
    )


def _typed(value: object) -> object:
    """Ansible's `-e accum_steps=8` gives text; numbers and null are meant as such."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
