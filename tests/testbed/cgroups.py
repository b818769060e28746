"""Empty cgroup folders that a host leaves behind when it is cut off with containers running in its inner Docker.

On cgroup v1 the engine's cgroup tree is bound into the host, so the inner containers' folders lie beside the engine's
own. Whoever cuts a host off notes their names first and sweeps afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from docker.errors import APIError
from docker.models.containers import Container

ROOT = Path("/sys/fs/cgroup")


@contextmanager
def swept(container: Container) -> Iterator[None]:
    """The block cuts `container` off; what its inner containers leave is removed after it, where we may."""
    inner = _inner(container)
    yield
    for name in inner:
        for folder in ROOT.glob(f"*/docker/{name}"):
            with suppress(OSError):  # not root, or in use again
                folder.rmdir()


def _inner(container: Container) -> list[str]:
    """Ids of the containers that run in it."""
    with suppress(APIError):  # it does not run
        code, output = container.exec_run(["timeout", "10", "docker", "ps", "-q", "--no-trunc"])
        if code == 0:
            return str(output, "ascii", "replace").split()  # type: ignore[arg-type]
    return []
