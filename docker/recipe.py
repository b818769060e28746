"""What the trainer image is made of, and the hash of it that says whether an image must be built again.

Pure apart from reading the clone. The hash covers every file of the build context, the build arguments and the names
and sizes of a wheelhouse; it becomes the image's tag and its label `io.gradferry.content`.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LABEL = "io.gradferry.content"
CONTROL_ONLY = ("ansible-core", "docker", "jinja2")  # of the project's dependencies, what a container has no use for
CONTEXT = ("constraints.txt", "docker/install-deps.sh", "docker/commands/gradferry", "docker/commands/torchrun")


@dataclass(frozen=True)
class Recipe:
    """Inputs of one image, read once: whoever edits the clone meanwhile gets the next image."""

    base: str
    repository: str
    torch_index: str
    pip_index: str
    wheels: str | None  # name of the image that carries a wheelhouse into the build
    files: Mapping[str, bytes]

    @property
    def content(self) -> str:
        """12 hex digits of everything that the image is made of."""
        digest = hashlib.sha256()
        for name, data in sorted(self.files.items()):
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
        for part in (self.base, self.torch_index, self.pip_index, self.wheels or ""):
            digest.update(part.encode() + b"\0")
        return digest.hexdigest()[:12]

    @property
    def reference(self) -> str:
        return f"{self.repository}:{self.content}"


def wheels_image(folder: Path | None) -> str | None:
    """Name of the image with the wheels of `folder`, by their names and sizes; None where there is no folder."""
    if folder is None:
        return None
    listing = "\n".join(f"{wheel.name} {wheel.stat().st_size}" for wheel in wheels(folder))
    return f"gradferry/wheels:{hashlib.sha256(listing.encode()).hexdigest()[:12]}"


def build_files(root: Path, packages: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Name -> content of everything that the build reads from the clone in `root`."""
    found = {name: (root / name).read_bytes() for name in CONTEXT}
    for path in _code(root):
        found[path.relative_to(root).as_posix()] = path.read_bytes()
    found["requirements.txt"] = requirements(root, packages).encode()
    found["Dockerfile"] = (root / "docker" / "trainer.Dockerfile").read_bytes()
    return found


def requirements(root: Path, packages: tuple[str, ...] = ()) -> str:
    """requirements.txt of the image: the project's dependencies, the extra `train`, and `packages` of the user."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = [name for name in project["dependencies"] if name not in CONTROL_ONLY]
    return "\n".join([*wanted, *project["optional-dependencies"]["train"], *packages]) + "\n"


def wheels(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.whl"))


def context(recipe: Recipe) -> io.BytesIO:
    """The build context as a tar in memory: some hundred kilobytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in sorted(recipe.files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    buffer.seek(0)
    return buffer


def _code(root: Path) -> Iterator[Path]:
    """The package's own files; caches and editors' leftovers are not part of it."""
    for path in sorted((root / "trainer").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
            yield path
