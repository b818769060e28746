"""What the hosts of a bed have written down: histories and status files, as files of the control machine."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from docker.errors import APIError

from tests.testbed.bed import Bed
from tests.testbed.errors import BedError
from tests.testbed.host import Host
from trainer.records.history import Histories, read_histories
from trainer.records.status import Status, parse_status

STATE = "/var/lib/gradferry"


def pull_histories(bed: Bed, target: Path, hosts: Sequence[str] | None = None) -> Histories:
    """Copy the histories of `hosts` (default: all) to `target`/HOST and read what is there, earlier copies too.

    A host that is lost keeps the copy that was pulled before.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name, host in bed.hosts.items():
        if hosts is None or name in hosts:
            _pull(host, target / name)
    return read_histories(target)


def statuses(bed: Bed) -> dict[str, Status | None]:
    """Host -> what its first rank shows of itself; None where it shows nothing."""
    return {name: _status(host) for name, host in bed.hosts.items()}


def _status(host: Host) -> Status | None:
    try:
        return parse_status(host.run(f"cat {STATE}/status/*.json").splitlines()[0])
    except (APIError, BedError, ValueError, IndexError):  # off, rebooting, or not yet there
        return None


def _pull(host: Host, target: Path) -> None:
    try:
        chunks, _ = host.container.get_archive(f"{STATE}/history")
    except APIError:
        return
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
        for entry in tar:  # files by their bare names: extraction filters came with Python 3.11.4, Debian 12 has 3.11.2
            if (content := tar.extractfile(entry)) is not None:
                file = target / "history" / Path(entry.name).name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.read())
