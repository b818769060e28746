"""The bed's SSH key, and the files that a host gets before its first boot."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from docker.models.containers import Container


def make_key(folder: Path) -> str:
    """A new key pair `id_ed25519` in `folder`; the public half as text."""
    path = folder / "id_ed25519"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gradferry-testbed", "-f", str(path)], check=True
    )
    return path.with_suffix(".pub").read_text()


def put_file(container: Container, path: str, text: str, mode: int = 0o644) -> None:
    """Write a file, owned by root, into a container, started or not. Missing folders are made with mode 0700."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folder = str(Path(path).parent).lstrip("/")
        if folder not in ("etc", "root", "usr/local/bin"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o700
            tar.addfile(entry)
        data = text.encode()
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.size, entry.mode = len(data), mode
        tar.addfile(entry, io.BytesIO(data))
    container.put_archive("/", buffer.getvalue())
