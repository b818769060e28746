"""What beds are made with: an engine, this clone's folders, and someone to tell about progress."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from docker import DockerClient

from tests.testbed.engine import Say, connect, running
from tests.testbed.folders import Folders, of_this_clone
from tests.testbed.images import Images
from tests.testbed.labels import Owner


@dataclass(frozen=True)
class Workshop:
    client: DockerClient
    folders: Folders
    say: Say

    @property
    def images(self) -> Images:
        return Images(self.client, self.folders, self.say)

    def owner(self, bed: str | None = None) -> Owner:
        return Owner(self.folders.clone_id, bed)


def say_on_stderr(line: str) -> None:
    print(f"testbed: {line}", file=sys.stderr, flush=True)


def open_if_running(say: Callable[[str], None] = say_on_stderr) -> Workshop | None:
    """The same, but no engine is installed or started; None where none runs."""
    client = running()
    return Workshop(client, of_this_clone(), say) if client else None


def open_workshop(say: Callable[[str], None] = say_on_stderr) -> Workshop:
    """Of this clone, on this machine's engine. Raises BedError where there is none and none can be started."""
    folders = of_this_clone()
    return Workshop(connect(folders.cache, say), folders, say)
