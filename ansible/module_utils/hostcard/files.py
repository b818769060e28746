"""Fingerprints of files: content by sha256, mode, owner."""

from __future__ import annotations

import glob
import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Iterable
from typing import Any


def _name(lookup: Any, number: int) -> str:
    try:
        return str(lookup(number)[0])
    except KeyError:
        return str(number)


def fingerprint(path: str) -> dict[str, Any] | None:
    """What `file_set` compares; None where there is nothing. A link is told by its kind and never equals a file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    seen: dict[str, Any] = {
        "mode": f"{stat.S_IMODE(status.st_mode):04o}",
        "owner": _name(pwd.getpwuid, status.st_uid),
        "group": _name(grp.getgrgid, status.st_gid),
        "uid": status.st_uid,
        "gid": status.st_gid,
    }
    if stat.S_ISDIR(status.st_mode):
        return {"kind": "directory", **seen}
    if not stat.S_ISREG(status.st_mode):
        return {"kind": "other", **seen}
    with open(path, "rb") as stream:
        return {"kind": "file", "sha256": hashlib.sha256(stream.read()).hexdigest(), **seen}


def watched(patterns: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Path -> fingerprint of everything that matches; `**` goes into folders."""
    found = {}
    for pattern in patterns:
        for path in glob.glob(pattern, recursive=True):
            seen = fingerprint(path.rstrip("/") or "/")
            if seen is not None:
                found[path.rstrip("/")] = seen
    return found
