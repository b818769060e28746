"""Remove units, files and images of ours, and say what was there."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from ansible.module_utils.hostcard import engine
from ansible.module_utils.hostcard.command import output_of
from ansible.module_utils.trainerhost.puller import PullFailed, request


class Left(Exception):
    """Something could not be removed; the message names it."""


def present(units: Iterable[str]) -> list[str]:
    """Those that run or are enabled, in the given order."""
    found = []
    for unit in units:
        shown = output_of(["systemctl", "show", "--property=ActiveState,UnitFileState", "--value", unit]) or ""
        active, enabled = [*shown.split("\n"), "", ""][:2]
        if active in ("active", "activating", "failed") or enabled == "enabled":
            found.append(unit)
    return found


def matching(patterns: Iterable[str]) -> list[str]:
    return sorted({path for pattern in patterns for path in glob.glob(pattern)})


def images(label: str) -> list[str]:
    """References of the images that bear `label`."""
    listed = engine.ask("/images/json") if label else None
    return sorted(t for i in listed or [] if label in (i.get("Labels") or {}) for t in i.get("RepoTags") or [])


def wipe(units: Sequence[str], paths: Sequence[str], references: Sequence[str]) -> None:
    """Units first: what runs would write its files again. Raises Left."""
    for unit in units:
        if output_of(["systemctl", "disable", "--now", unit]) is None:
            output_of(["systemctl", "stop", unit])
    output_of(["systemctl", "reset-failed", *units])
    for reference in references:
        _remove_image(reference)
    for path in paths:
        _remove(path)
    output_of(["systemctl", "daemon-reload"])


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
    except OSError as error:
        raise Left(f"{path}: cannot be removed: {error.strerror}") from None


def _remove_image(reference: str) -> None:
    try:
        code, body = request("DELETE", f"/images/{quote(reference, safe='')}?force=1")
    except PullFailed as failed:
        raise Left(f"image {reference}: {failed}") from None
    if code not in (200, 404):
        raise Left(f"image {reference}: {body.decode('utf-8', 'replace').strip()[:200]}")
