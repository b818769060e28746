"""Build a stage of vps.Dockerfile with the engine's own builder, once per content."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass

from docker import DockerClient
from docker.errors import ImageNotFound

from tests.testbed.engine import Say
from tests.testbed.errors import BedError
from tests.testbed.labels import Owner


@dataclass(frozen=True)
class Recipe:
    """What an image is made of; equal recipes give one image."""

    stage: str
    dockerfile: str
    rootfs: str

    @property
    def tag(self) -> str:
        text = "\0".join((self.stage, _up_to(self.dockerfile, self.stage), self.rootfs))
        return f"gradferry/{self.stage}:{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def built(client: DockerClient, recipe: Recipe, owner: Owner, say: Say) -> str:
    """The tag of the image, which is built if it is not there. Raises BedError with the end of the builder's output."""
    if has_image(client, recipe.tag):
        return recipe.tag
    say(f"building image {recipe.tag}")
    output: list[str] = []
    stream = client.api.build(
        fileobj=_context(recipe.dockerfile),
        custom_context=True,
        encoding="utf-8",
        target=recipe.stage,
        buildargs={"ROOTFS": recipe.rootfs},
        labels=owner.labels("image"),
        tag=recipe.tag,
        rm=True,
        forcerm=True,
        decode=True,
    )
    for line in stream:
        output.append(line.get("stream", "").rstrip())
        if "error" in line:
            tail = " | ".join([text for text in output if text][-3:])
            raise BedError(f"Image {recipe.tag} cannot be built: {line['error']}", f"Last output: {tail}")
    return recipe.tag


def has_image(client: DockerClient, tag: str) -> bool:
    try:
        client.images.get(tag)
    except ImageNotFound:
        return False
    return True


def _up_to(dockerfile: str, stage: str) -> str:
    """The text that `stage` depends on: later stages do not change it."""
    lines, inside = [], False
    for line in dockerfile.splitlines():
        if line.startswith("FROM "):
            if inside:
                break
            inside = line.endswith(f" AS {stage}")
        if not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines)


def _context(dockerfile: str) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        data = dockerfile.encode()
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    file.seek(0)
    return file
