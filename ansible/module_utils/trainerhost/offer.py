"""Files that the control node asks for, readable by the user that it logs in as."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.trainerhost.state import sha256_of

PREFIX = "gradferry-offer-"


def listed(sources: Mapping[str, str]) -> list[dict[str, Any]]:
    """One entry a file: path on the host, path below the destination, bytes, sha256. What is not there is left out."""
    found = []
    for source, below in sources.items():
        for path, relative in _files(source, below):
            found.append({"path": path, "below": relative, "bytes": os.path.getsize(path), "sha256": sha256_of(path)})
    return found


def laid_out(wanted: Sequence[str]) -> dict[str, Any]:
    """Path -> where the login user can read it. As root it is the file itself; else a copy in a folder of that user."""
    user = os.environ.get("SUDO_UID")
    if not user or user == "0":
        return {"folder": None, "places": {path: path for path in wanted}}
    folder = tempfile.mkdtemp(prefix=PREFIX, dir="/var/tmp")
    places = {}
    for number, path in enumerate(wanted):
        places[path] = os.path.join(folder, str(number))
        shutil.copyfile(path, places[path])
        os.chown(places[path], int(user), -1)
    os.chown(folder, int(user), -1)
    return {"folder": folder, "places": places}


def withdraw(folder: str | None) -> None:
    if folder and os.path.basename(folder).startswith(PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _files(source: str, below: str) -> Iterator[tuple[str, str]]:
    if os.path.isfile(source):
        yield source, below
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path, os.path.join(below, os.path.relpath(path, source))
