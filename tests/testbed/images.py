"""The images of the test bed: base, wan, plain and ready (docker/vps.Dockerfile), made on first use."""

from __future__ import annotations

from dataclasses import dataclass

from docker import DockerClient

from tests.testbed.engine import Say
from tests.testbed.folders import Folders
from tests.testbed.image_build import Recipe, built
from tests.testbed.labels import Owner
from tests.testbed.rootfs import rootfs

SUITE = "bookworm"


@dataclass(frozen=True)
class Images:
    """Gives tags; an image that is not there is built first."""

    client: DockerClient
    folders: Folders
    say: Say
    suite: str = SUITE

    def tag(self, stage: str) -> str:
        """Tag of `stage`: "base" (which the trainer image can be built on), "wan", "plain" or "ready"."""
        dockerfile = (self.folders.root / "docker" / "vps.Dockerfile").read_text()
        start = rootfs(self.client, self.suite, self.folders.cache, self.folders.clone_id, self.say)
        recipe = Recipe(stage, dockerfile, start)
        return built(self.client, recipe, Owner(self.folders.clone_id), self.say)
