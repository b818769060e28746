"""Does a host hold what we want there? Asked on the control node (of facts) and on the host (of the disk)."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

DEFAULTS = {"mode": "0644", "owner": "root", "group": "root"}


def differs(want: Mapping[str, Any], seen: Mapping[str, Any] | None) -> bool:
    """`want`: dest, state, content, mode, owner, group. `seen`: a fingerprint, None where there is nothing."""
    state = want.get("state") or "file"
    if state == "absent" or seen is None:
        return (seen is None) != (state == "absent")
    if seen["kind"] != state:
        return True
    if state == "file" and hashlib.sha256((want.get("content") or "").encode()).hexdigest() != seen["sha256"]:
        return True
    owner, group = want.get("owner") or DEFAULTS["owner"], want.get("group") or DEFAULTS["group"]
    return (
        int(want.get("mode") or DEFAULTS["mode"], 8) != int(seen["mode"], 8)
        or owner not in (seen["owner"], str(seen["uid"]))
        or group not in (seen["group"], str(seen["gid"]))
    )


def is_watched(path: str, patterns: Iterable[str]) -> bool:
    """True where facts with these glob patterns would show `path`, so that its absence there means something."""
    return any(fnmatch.fnmatchcase(path, pattern.replace("**", "*")) for pattern in patterns)
