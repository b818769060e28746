"""A folder that is received from elsewhere: gathered beside its place, verified, then renamed there as a whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from ansible.module_utils.trainerhost.state import VERIFIED, sha256_of


class Damaged(Exception):
    """A file is not what was sent; the message names it."""


class Intake:
    """`files`: name -> sha256. What has arrived waits in `<dest>.partial` until all of it is there. `whole`: the folder
    is these files and nothing else."""

    def __init__(self, dest: str, files: Mapping[str, str], owner: int, whole: bool = True) -> None:
        self.dest, self.files, self.owner, self.whole = dest.rstrip("/"), dict(files), owner, whole
        self.partial = self.dest + ".partial"

    def is_complete(self) -> bool:
        return all(sha256_of(os.path.join(self.dest, name)) == digest for name, digest in self.files.items())

    def missing(self) -> list[str]:
        """Names that must still be sent."""
        if self.is_complete():
            return []
        return [n for n, digest in self.files.items() if sha256_of(os.path.join(self.partial, n)) != digest]

    def place(self, arrived: str | None) -> None:
        """Take in what lies in `arrived`. Raises Damaged; then the good files stay for the next time."""
        os.makedirs(self.partial, mode=0o755, exist_ok=True)
        for name in self.missing():
            source = os.path.join(arrived or "", name)
            if sha256_of(source) != self.files[name]:
                raise Damaged(f"{self.dest}/{name}: its sha256 on this host is not that of the file sent. Run again.")
            shutil.copyfile(source, os.path.join(self.partial, name))
        index = self.files.get("index.json")
        if index:
            with open(os.path.join(self.partial, VERIFIED), "w", encoding="ascii") as stream:
                stream.write(index + "\n")
        self._own()
        if not self.whole:
            return self._into_place()
        old = self.dest + ".old"
        shutil.rmtree(old, ignore_errors=True)
        if os.path.isdir(self.dest):
            os.rename(self.dest, old)
        os.rename(self.partial, self.dest)
        shutil.rmtree(old, ignore_errors=True)

    def _into_place(self) -> None:
        """Each file by itself, beside what the folder holds."""
        for name in self.files:
            os.rename(os.path.join(self.partial, name), os.path.join(self.dest, name))
        shutil.rmtree(self.partial, ignore_errors=True)

    def _own(self) -> None:
        os.chown(self.partial, self.owner, self.owner)
        for name in os.listdir(self.partial):
            os.chown(os.path.join(self.partial, name), self.owner, self.owner)
