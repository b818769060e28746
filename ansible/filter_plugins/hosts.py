"""From facts to sentences: what keeps a host from being used, what will be changed on it, and its fact card. Pure."""

from __future__ import annotations

import fnmatch
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
GIB = 1024**3


def missing_from(wanted: Iterable[str], installed: Mapping[str, str]) -> list[str]:
    """Names of packages that are not installed; `a|b` is satisfied by either and asks for the first."""
    return [
        alternatives.split("|")[0]
        for alternatives in wanted
        if not any(name in installed for name in alternatives.split("|"))
    ]


def by_os(table: Mapping[str, Any], system: Mapping[str, str]) -> Any:
    """Entry of a table for `debian-12`, else for `debian`, else `default`."""
    for key in (f"{system['id']}-{system['version']}", system["id"], "default"):
        if key in table:
            return table[key]
    raise ValueError(f"no entry for {system['pretty'] or 'an unknown system'} among {', '.join(sorted(table))}")


def matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that match one of the glob patterns, sorted."""
    return sorted(name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


def maskable(services: Mapping[str, Mapping[str, str]], units: Sequence[str]) -> list[str]:
    """The units of these that exist here and are not masked yet."""
    seen = {unit: services.get(unit, {}) for unit in units}
    return [u for u, state in seen.items() if state.get("load") == "loaded" and state.get("enabled") != "masked"]


def kernel_settings(wanted: Mapping[str, str], facts: Facts) -> dict[str, Any]:
    """set: those that this kernel takes; apply: of these, the ones that are not in force; skipped: name -> reason."""
    chosen, skipped = {}, {}
    for name, value in wanted.items():
        reason = _why_not(name, str(value), facts)
        if reason:
            skipped[name] = reason
        else:
            chosen[name] = str(value)
    apply = {name: value for name, value in chosen.items() if facts["sysctls"][name]["value"] != value}
    return {"set": chosen, "apply": apply, "skipped": skipped}


def _why_not(name: str, value: str, facts: Facts) -> str | None:
    if value == "bbr" and facts["bbr"] == "missing":
        return "this kernel has no BBR; its default stays"
    if value == "fq" and facts["fq"] == "missing":
        return "this kernel has no fq; BBR paces by itself"
    if name not in facts["sysctls"]:
        return "does not exist here (a container, or an older kernel)"
    return None if facts["sysctls"][name]["settable"] else "is read-only here"


def connection_problems(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One sentence for each host whose facts could not be read. `results`: host -> what the module's task returned."""
    return [f"{host}: {_connection_problem(host, result)}" for host, result in results.items() if _failed(result)]


def _failed(result: Mapping[str, Any]) -> bool:
    return bool(result.get("unreachable") or result.get("failed"))


def _connection_problem(host: str, result: Mapping[str, Any]) -> str:
    said = " ".join(str(result.get(key) or "") for key in ("msg", "module_stderr", "module_stdout")).strip()
    lower = said.lower()
    last = said.splitlines()[-1][:200] if said else "no answer"
    if "host key verification failed" in lower or "identification has changed" in lower:
        return f"its SSH key is not the one that we know. If the host was replaced: site.yml -e replaced={host}"
    if "permission denied" in lower and result.get("unreachable"):
        return f"SSH refuses our key or user ({last}). Check ansible_user and ansible_ssh_private_key_file."
    if result.get("unreachable"):
        return f"cannot be reached ({last}). Check ansible_host and ansible_port. Without it: --limit '!{host}'"
    if "password" in lower or "sudo" in lower or "su:" in lower:
        return f"ansible_user cannot become root ({last}). Allow sudo without a password, or give -K."
    if "not found" in lower and "python" in lower:
        return "has no Python 3 at ansible_python_interpreter. On Debian and Ubuntu: apt-get install python3"
    return f"its facts could not be read: {last}"


def host_problems(facts: Facts, needs: Mapping[str, Any], now_s: float) -> list[str]:
    """What keeps this host from being set up. `needs` is `preflight_limits` of ansible/vars/limits.yml."""
    return [f"{facts['name']}: {problem}" for problem in _host_problems(facts, needs, now_s)]


def _host_problems(facts: Facts, needs: Mapping[str, Any], now_s: float) -> Iterator[str]:
    system = facts["os"]
    if f"{system['id']} {system['version']}" not in needs["systems"]:
        seen = system["pretty"] or "an unknown system"
        yield f"runs {seen}; what we can set up: {', '.join(needs['systems'])}."
    if not facts["root"]:
        yield "we are not root there. Set ansible_user=root, or a user with sudo."
    if not facts["systemd"]:
        yield "has no systemd (a container host?). Rent a VM: containers without systemd are not set up yet."
    if abs(facts["clock_s"] - now_s) > needs["clock_off_s"]:
        off = facts["clock_s"] - now_s
        yield f"its clock is {off:+.0f} s off ours. Turn on time synchronisation: timedatectl set-ntp true"
    if facts["disk"]["free"] < needs["disk_free_bytes"]:
        yield (
            f"{facts['disk']['path']} has {facts['disk']['free'] / GIB:.1f} GiB free; "
            f"at least {needs['disk_free_bytes'] / GIB:.1f} are needed."
        )
    if facts["memory_bytes"] < needs["memory_bytes"]:
        least = needs["memory_bytes"] / GIB
        yield f"has {facts['memory_bytes'] / GIB:.1f} GiB of memory; at least {least:.1f} are needed."
    if facts["docker"]["kind"] in ("snap", "podman"):
        yield f"its Docker is {facts['docker']['kind']}'s, which cannot be used. Remove it; ours is installed instead."
    if facts["docker"]["config"] is None:
        yield "/etc/docker/daemon.json is not a JSON object, so Docker cannot start. Repair it or remove it."
    mesh = ipaddress.ip_network(needs["mesh_subnet"])
    for taken in facts["network"]["taken"]:
        if mesh.overlaps(ipaddress.ip_network(taken, strict=False)):
            yield f"its own network {taken} meets mesh_subnet {mesh}. Choose another, as mesh_subnet=10.188.0.0/24"
    if facts["mesh"]["kernel_module"] == "missing" and not facts["mesh"]["tun"]:
        yield "has neither WireGuard in its kernel nor /dev/net/tun. Ask the provider to enable TUN, or rent another."


def step(sentence: str, what: Any) -> list[str]:
    """A step of a plan: a sentence where there is something to do, else nothing. A list is named in the sentence."""
    if isinstance(what, (bool, str)):
        return [sentence] if what in (True, "True", "true") else []
    return [f"{sentence} {', '.join(str(item) for item in what)}"] if what else []


def fact_table(cards: Sequence[Facts]) -> list[str]:
    """One line a host under a heading, columns aligned: region, OS, kernel, CPUs, memory, GPUs, driver, disk, MTU."""
    rows = [("host", "region", "system", "kernel", "cpus", "memory", "gpus", "driver", "disk free", "mtu", "docker")]
    rows += [_row(card) for card in cards]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(card: Facts) -> tuple[str, ...]:
    return (
        card["name"],
        card["region"],
        f"{card['os']['id']} {card['os']['version']}",
        card["kernel"],
        str(card["cpus"]),
        f"{card['memory_bytes'] / GIB:.0f} GiB",
        ",".join(gpu["device_id"] for gpu in card["gpus"]) or "none",
        card["driver"] or "none",
        f"{card['disk']['free'] / GIB:.0f} GiB",
        f"{card['network']['mtu']}/{card['mesh']['mtu'] or '-'}",
        card["docker"]["version"] or "none",
    )


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "by_os": by_os,
            "connection_problems": connection_problems,
            "fact_table": fact_table,
            "host_problems": host_problems,
            "kernel_settings": kernel_settings,
            "maskable": maskable,
            "matching": matching,
            "missing_from": missing_from,
            "step": step,
        }
