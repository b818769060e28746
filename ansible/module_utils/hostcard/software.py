"""Packages, apt's lists and locks, and the state of systemd units."""

from __future__ import annotations

import fcntl
import glob
import json
import os
import time
from collections.abc import Iterable
from typing import Any

from ansible.module_utils.hostcard.command import output_of, text_of

LISTS = "/var/lib/apt/lists"
FREEZE_RECORD = "/etc/gradferry-host/freeze.json"
LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock")
UNIT_PROPERTIES = ("Id", "LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload", "MainPID")


def parse_packages(text: str) -> tuple[dict[str, str], list[str]]:
    """(installed name -> version, names on hold) of lines `status<TAB>name<TAB>version`."""
    installed, held = {}, []
    for line in text.splitlines():
        status, _, rest = line.partition("\t")
        name, _, version = rest.partition("\t")
        if status[1:2] == "i":
            installed[name] = version
        if status[:1] == "h":
            held.append(name)
    return installed, sorted(held)


def packages() -> tuple[dict[str, str], list[str]]:
    return parse_packages(output_of(["dpkg-query", "-W", "-f=${db:Status-Abbrev}\t${Package}\t${Version}\n"]) or "")


def is_locked(path: str) -> bool:
    """True where another process (apt, dpkg, unattended-upgrades) holds this lock right now."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(descriptor, fcntl.LOCK_UN)
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)


def apt() -> dict[str, Any]:
    """How many package lists there are, when they were refreshed, and whether apt is busy."""
    lists = len(glob.glob(f"{LISTS}/*Packages*"))
    return {
        "lists": lists,
        # A list's own time is the archive's; the folder's is that of the last refresh.
        "age_s": int(time.time() - os.stat(LISTS).st_mtime) if lists else None,
        "locked": any(is_locked(path) for path in LOCKS),
        "interrupted": bool(glob.glob("/var/lib/dpkg/updates/*")),
    }


def parse_units(text: str) -> dict[str, dict[str, Any]]:
    """Unit -> state, from `systemctl show` blocks parted by empty lines. An unknown unit has load = not-found."""
    units = {}
    for block in text.strip().split("\n\n"):
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if fields.get("Id"):
            units[fields["Id"]] = {
                "load": fields.get("LoadState", ""),
                "active": fields.get("ActiveState", ""),
                "enabled": fields.get("UnitFileState", ""),
                "reload": fields.get("NeedDaemonReload") == "yes",
                "pid": int(fields.get("MainPID") or 0),
            }
    return units


def services(units: Iterable[str]) -> dict[str, dict[str, Any]]:
    names = list(units)
    shown = output_of(["systemctl", "show", f"--property={','.join(UNIT_PROPERTIES)}", *names]) if names else None
    return parse_units(shown or "")


def frozen() -> dict[str, list[str]]:
    """What maintenance_freeze holds and masks here, by its own record; what others hold is not in it."""
    try:
        record = json.loads(text_of(FREEZE_RECORD) or "{}")
    except ValueError:
        record = {}
    return {"packages": list(record.get("packages", [])), "units": list(record.get("units", []))}
