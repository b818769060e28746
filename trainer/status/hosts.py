"""Asking the hosts of an inventory over plain SSH, all at once; a host that does not answer is a row that says so."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import ConfigError, HostError
from trainer.launch import STATE_FOLDER
from trainer.status.rows import Row, rows_of

GROUP = "hosts"
CONNECT_S = 10
ANSWER_S = 30


@dataclass(frozen=True)
class Target:
    """How a host is reached: what the inventory says of it."""

    name: str
    address: str
    region: str = ""
    port: int | None = None
    user: str | None = None
    key_file: str | None = None
    more_ssh_args: tuple[str, ...] = ()


def targets_of(inventory: Mapping[str, Any]) -> list[Target]:
    """The hosts of `ansible-inventory --list`: those of the group `hosts`, else all."""
    variables = inventory.get("_meta", {}).get("hostvars", {})
    names = inventory.get(GROUP, {}).get("hosts") or sorted(variables)
    return [_target(name, variables.get(name, {})) for name in names]


def ssh_command(target: Target, known_hosts: Path, remote: str) -> list[str]:
    """The argument list that runs `remote` on the host, with the options that our playbooks connect with."""
    options = [
        "BatchMode=yes",
        f"ConnectTimeout={CONNECT_S}",
        "ServerAliveInterval=15",
        "StrictHostKeyChecking=accept-new",
        f'UserKnownHostsFile="{known_hosts}"',
        "ControlMaster=auto",
        "ControlPersist=120s",
        "ControlPath=~/.ansible/cp/gradferry-%C",
        *([f"Port={target.port}"] if target.port else []),
        *([f"User={target.user}"] if target.user else []),
        *([f'IdentityFile="{target.key_file}"'] if target.key_file else []),
    ]
    flags = [part for option in options for part in ("-o", option)]
    return ["ssh", *flags, *target.more_ssh_args, target.address, remote]


def remote_command(state: str = STATE_FOLDER) -> str:
    """Print the host's time, then its status files, one a line. The state folder is not open to every user."""
    show = f"date +%s; cat {shlex.quote(state)}/status/*.json 2>/dev/null; true"
    return f'if [ "$(id -u)" = 0 ]; then {show}; else sudo -n sh -c {shlex.quote(show)}; fi'


def read_inventory(path: Path) -> list[Target]:
    """The hosts of an inventory file as Ansible reads it. Raises HostError with Ansible's own first complaint."""
    if not path.exists():
        raise HostError(f"{path}: no such inventory", "Give -i INVENTORY, or --state DIR for a run on this machine")
    beside = Path(sys.executable).with_name("ansible-inventory")  # of our own environment, if it is not on PATH
    command = [str(beside) if beside.exists() else "ansible-inventory", "-i", str(path), "--list"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        raise HostError(
            "ansible-inventory is not installed here", "pip install gradferry, or use --state DIR"
        ) from None
    except subprocess.TimeoutExpired:
        raise HostError(
            f"{path}: ansible-inventory took more than 60 s", "Try it by hand: " + " ".join(command)
        ) from None
    if done.returncode:
        complaint = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise HostError(f"{path}: Ansible cannot read it: {complaint}", "Try it by hand: " + " ".join(command))
    targets = targets_of(json.loads(done.stdout))
    if not targets:
        for complaint in re.findall(r"Failed to parse inventory with .*", done.stderr)[:1]:
            raise HostError(f"{path}: Ansible cannot read it: {complaint}", "Try it by hand: " + " ".join(command))
        raise HostError(f"{path}: no hosts in it", f"List at least one under [{GROUP}]")
    return targets


def rows_of_hosts(targets: Sequence[Target], known_hosts: Path, state: str = STATE_FOLDER) -> list[Row]:
    """Ask all hosts at the same time; takes as long as the slowest, at most about `ANSWER_S`."""
    Path(os.path.expanduser("~/.ansible/cp")).mkdir(parents=True, exist_ok=True, mode=0o700)
    with ThreadPoolExecutor(max_workers=min(32, max(1, len(targets)))) as pool:
        answers = pool.map(lambda target: _ask(target, known_hosts, state), targets)
        return [row for rows in answers for row in rows]


def known_hosts_of(inventory: Path) -> Path:
    """Where our playbooks keep the hosts' keys: beside the inventory."""
    return inventory.resolve().with_suffix(".known_hosts")


def _ask(target: Target, known_hosts: Path, state: str) -> list[Row]:
    command = ssh_command(target, known_hosts, remote_command(state))
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return [Row(target.name, target.region, problem=f"no answer within {ANSWER_S} s")]
    except FileNotFoundError:
        return [Row(target.name, target.region, problem="ssh is not installed here")]
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        complaint = (done.stderr.strip().splitlines() or [f"ssh ended with {done.returncode}"])[-1]
        return [Row(target.name, target.region, problem=complaint)]
    try:
        now_s = float(lines[0])
    except ValueError:
        return [Row(target.name, target.region, problem=f"unexpected answer: {lines[0][:80]}")]
    return rows_of(target.name, target.region, lines[1:], now_s)


def _target(name: str, variables: Mapping[str, Any]) -> Target:
    port = variables.get("ansible_port", variables.get("ansible_ssh_port"))
    more = " ".join(
        str(variables[key]) for key in ("ansible_ssh_common_args", "ansible_ssh_extra_args") if variables.get(key)
    )
    key_file = variables.get("ansible_ssh_private_key_file", variables.get("ansible_private_key_file"))
    return Target(
        name=name,
        address=str(variables.get("ansible_host", variables.get("ansible_ssh_host", name))),
        region=str(variables.get("region", "")),
        port=_port(name, port) if port else None,
        user=variables.get("ansible_user", variables.get("ansible_ssh_user")),
        key_file=os.path.expanduser(str(key_file)) if key_file else None,
        more_ssh_args=_words(name, more),
    )


def _port(host: str, value: object) -> int:
    if not str(value).isdecimal() or not 1 <= int(str(value)) <= 65535:
        raise ConfigError(f"{host}: ansible_port = {value!r}", "It must be a number from 1 to 65535")
    return int(str(value))


def _words(host: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigError(f"{host}: its arguments for ssh, `{text}`: {error}", "Close every quote") from None
