"""Operating system, processor, memory, disk, clock, users and kernel settings of a host."""

from __future__ import annotations

import glob
import os
import platform
import pwd
import shlex
import time
from collections.abc import Iterable
from typing import Any

from ansible.module_utils.hostcard.command import find, output_of, text_of


def parse_os_release(text: str) -> dict[str, str]:
    """Fields of os-release(5) that tables are keyed by; empty strings where a field is missing."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and not key.startswith("#"):
            fields[key.strip()] = "".join(shlex.split(value)) if value.count('"') != 1 else value
    return {
        "id": fields.get("ID", ""),
        "version": fields.get("VERSION_ID", ""),
        "codename": fields.get("VERSION_CODENAME", ""),
        "pretty": fields.get("PRETTY_NAME", ""),
    }


def memory_bytes() -> int:
    for line in (text_of("/proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def disk_of(path: str) -> dict[str, Any]:
    """Size of the file system that holds `path` (or its nearest parent that exists), in bytes."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    stat = os.statvfs(path)
    return {"path": path, "total": stat.f_blocks * stat.f_frsize, "free": stat.f_bavail * stat.f_frsize}


def sysctls(globs: Iterable[str], root: str = "/proc/sys") -> dict[str, dict[str, Any]]:
    """Name -> value, and whether it can be set, of the kernel settings that exist here and match (`net/core/*`).

    A container has fewer of them, and may have them read-only."""
    found: dict[str, dict[str, Any]] = {}
    for pattern in globs:
        for path in glob.glob(os.path.join(root, pattern)):
            value = text_of(path) if os.path.isfile(path) else None
            if value is not None:
                name = os.path.relpath(path, root).replace("/", ".")
                found[name] = {"value": " ".join(value.split()), "settable": os.access(path, os.W_OK)}
    return found


def has_bbr(settings: dict[str, dict[str, Any]]) -> bool:
    available = settings.get("net.ipv4.tcp_available_congestion_control", {"value": ""})
    return "bbr" in available["value"].split()


def kernel_part(module: str, symbol_file: str | None = None) -> str:
    """`loaded`, `available` (modprobe would find it) or `missing`. A built-in part counts as loaded."""
    if os.path.isdir(f"/sys/module/{module}") or (symbol_file and os.path.exists(symbol_file)):
        return "loaded"
    folder = f"/lib/modules/{platform.release()}"
    for index, suffixes in (("modules.builtin", (".ko",)), ("modules.dep", (".ko", ".ko.xz", ".ko.zst", ".ko.gz"))):
        for line in (text_of(os.path.join(folder, index)) or "").splitlines():
            name = os.path.basename(line.split(":")[0]).replace("-", "_")
            if any(name == module + suffix for suffix in suffixes):
                return "loaded" if index == "modules.builtin" else "available"
    return "missing"


def user(name: str) -> dict[str, Any] | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return {"uid": entry.pw_uid, "gid": entry.pw_gid, "home": entry.pw_dir, "shell": entry.pw_shell}


def cloud_init() -> str:
    """`none`, `running`, `done` or what else `cloud-init status` says."""
    if find("cloud-init") is None:
        return "none"
    status = output_of(["cloud-init", "status"]) or ""
    return status.partition("status:")[2].split("\n")[0].strip() or "unknown"


def read(disk_path: str) -> dict[str, Any]:
    uptime = text_of("/proc/uptime") or "0"
    return {
        "os": parse_os_release(text_of("/etc/os-release") or ""),
        "kernel": platform.release(),
        "arch": platform.machine(),
        "python": platform.python_version(),
        "systemd": os.path.isdir("/run/systemd/system"),
        "virtualization": (output_of(["systemd-detect-virt"]) or "none").strip(),
        "root": os.geteuid() == 0,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "disk": disk_of(disk_path),
        "boot_id": text_of("/proc/sys/kernel/random/boot_id") or "",
        "uptime_s": float(uptime.split()[0]),
        "clock_s": time.time(),
        "cloud_init": cloud_init(),
    }
