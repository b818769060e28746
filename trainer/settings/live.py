"""New settings for a run that trains: a watched file, taken up by all replicas at one step, and acknowledged.

The file is the desired state. A change that is valid and touches only what may change live becomes a candidate; its
revision travels with every exchange, and when all replicas hold the same one it is in force from the next window.
Anything else is refused: the run goes on as it was, and the acknowledgement says why.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from trainer.batching import check_relation
from trainer.config import Run, restart_changes, revision
from trainer.errors import ConfigError, GradferryError
from trainer.settings.inforce import InForce


class Acks:
    """`acks/<revision>.json` of a host: the revision in force, and those refused since it came into force."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def accepted(self, revision: str, step: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for path in self._folder.glob("*.json"):
            if path.stem != revision:
                path.unlink(missing_ok=True)
        self._write(revision, {"revision": revision, "accepted": True, "step": step, "reason": ""})

    def refused(self, revision: str, step: int, reason: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._write(revision, {"revision": revision, "accepted": False, "step": step, "reason": reason})

    def _write(self, revision: str, values: dict[str, object]) -> None:
        temporary = self._folder / f".{revision}.{os.getpid()}"
        temporary.write_text(json.dumps(values) + "\n", encoding="utf-8")
        temporary.replace(self._folder / f"{revision}.json")


class Desired(Protocol):
    """What the loop asks for new settings."""

    def look(self, inforce: InForce, step: int) -> int:
        """The revision (48 bits) that this replica would take up next; 0 for none."""

    def take(self, revision: int) -> Run:
        """The run of that revision, which all replicas hold."""

    def in_force(self, inforce: InForce, step: int) -> None:
        """`inforce` holds from now on, after `step` steps."""


class AsTheyAre:
    """Settings that do not change."""

    def look(self, inforce: InForce, step: int) -> int:
        return 0

    def take(self, revision: int) -> Run:
        raise ValueError("no new settings were offered")

    def in_force(self, inforce: InForce, step: int) -> None:
        pass


class WatchedFile:
    """The file at `path`, read by `read` when it has changed. `acks`: None on ranks whose neighbour writes them."""

    def __init__(self, path: Path, read: Callable[[], Run], replicas: int, acks: Acks | None) -> None:
        self._path, self._read, self._replicas, self._acks = path, read, replicas, acks
        self._seen: tuple[int, int, int] | None = None
        self._candidate: Run | None = None

    def look(self, inforce: InForce, step: int) -> int:
        mark = _mark(self._path)
        if mark is not None and mark != self._seen:
            self._seen = mark
            self._candidate = self._consider(inforce, step)
        return int(revision(self._candidate), 16) if self._candidate is not None else 0

    def take(self, revision: int) -> Run:
        assert self._candidate is not None  # all replicas hold it, so we do
        run, self._candidate = self._candidate, None
        return run

    def in_force(self, inforce: InForce, step: int) -> None:
        if self._acks is not None:
            self._acks.accepted(inforce.revision, step)

    def _consider(self, inforce: InForce, step: int) -> Run | None:
        try:
            run = self._read()
            if revision(run) == inforce.revision:
                self.in_force(inforce, step)
                return None
            if needs := restart_changes(inforce.run, run):
                raise ConfigError(f"{', '.join(sorted(needs))} cannot change while the run trains: it needs a restart")
            check_relation(run.accumulation, self._replicas)
            return run
        except GradferryError as error:
            if self._acks is not None:
                self._acks.refused(_claimed(self._path), step, str(error))
            return None


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        seen = path.stat()
    except OSError:  # in the middle of being replaced, or gone: nothing new is desired
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _claimed(path: Path) -> str:
    """The revision that a refused file says it is, or 12 digits of its content."""
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    try:
        claimed = str(json.loads(content)["revision"])
        if claimed.isalnum():
            return claimed
    except (ValueError, KeyError, TypeError):
        pass
    return hashlib.sha256(content).hexdigest()[:12]
