"""Writing and reading histories. A line is written whole by one call; a kill leaves at most one torn line behind."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from trainer.errors import DataError
from trainer.records.events import Checkpoint, Ended, Event, decode, encode


@dataclass(frozen=True)
class Entry:
    """An event with when, where and by whom. t: unix seconds on that host's clock."""

    t: float
    host: str
    rank: int
    event: Event


@dataclass(frozen=True)
class Histories:
    """What was read from the files of one run.

    Entries of one host and rank stand in the order in which they were written. torn: places of lines that a kill cut
    short (nothing was lost but that line). damaged: places of lines that cannot be explained like that.
    """

    entries: tuple[Entry, ...]
    torn: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


class History:
    """Append events to one file. Not to be shared between processes; each rank has its own."""

    def __init__(self, path: Path, host: str, rank: int, clock: Callable[[], float] = time.time) -> None:
        self.path, self._host, self._rank, self._clock = path, host, rank, clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        self._end_torn_line()

    def __enter__(self) -> History:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def write(self, event: Event) -> None:
        """Append one line. It survives the process at once, and the host once a checkpoint or the end is written."""
        who = {"t": round(self._clock(), 6), "host": self._host, "rank": self._rank, "event": event.name}
        size = os.fstat(self._file).st_size
        try:
            _write_all(self._file, (json.dumps(who | encode(event), allow_nan=False) + "\n").encode())
        except OSError:
            os.ftruncate(self._file, size)  # a full disk: no half of a line, the caller may try again
            raise
        if isinstance(event, Checkpoint | Ended):
            os.fsync(self._file)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _end_torn_line(self) -> None:
        """What a killed process left unfinished stays as a line of its own; the reader knows what it is."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            _write_all(self._file, b"\n")


def history_path(state: Path, host: str, rank: int) -> Path:
    """Where a rank's history is in its state folder."""
    return state / "history" / f"{host}-{rank}.jsonl"


def read_histories(*folders: str | Path) -> Histories:
    """All histories in `folders`: state folders, or folders of several hosts' state as they were pulled.

    An entry that stands in two copies of the same file counts once. Raises DataError where a folder is missing.
    """
    paths = sorted({path for folder in folders for path in _files(Path(folder))})
    parts = sorted((_parse(path) for path in paths), key=lambda part: part.entries[0].t if part.entries else 0.0)
    known: set[tuple[object, ...]] = set()
    entries: list[Entry] = []
    for part in parts:
        keyed = [(_key(entry), entry) for entry in part.entries]
        entries += [entry for key, entry in keyed if key not in known]
        known |= {key for key, _ in keyed}  # between files only: a line that stands twice in one was written twice
    return Histories(
        tuple(entries),
        tuple(place for part in parts for place in part.torn),
        tuple(place for part in parts for place in part.damaged),
    )


def _key(entry: Entry) -> tuple[object, ...]:
    return entry.t, entry.host, entry.rank, entry.event.name, json.dumps(encode(entry.event), sort_keys=True)


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_file():
        yield folder
        return
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder", "Give a state folder, or the folder that histories were pulled to")
    for path in folder.rglob("*.jsonl"):
        if path.parent.name != "metrics":
            yield path


def _parse(path: Path) -> Histories:
    entries: list[Entry] = []
    unreadable: list[tuple[int, int]] = []  # (line number, entries before it)
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            values = json.loads(line)
            event = decode(values["event"], values)
            if event is not None:
                entries.append(Entry(float(values["t"]), str(values["host"]), int(values["rank"]), event))
        except (ValueError, KeyError, TypeError, RecursionError):
            unreadable.append((number, len(entries)))
    torn: list[str] = []
    damaged: list[str] = []
    for number, before in unreadable:
        ends_the_file = number == len(lines) or not any(lines[number:])
        restarted = before < len(entries) and entries[before].event.name == "started"
        (torn if ends_the_file or restarted else damaged).append(f"{path}:{number}")
    return Histories(tuple(entries), tuple(torn), tuple(damaged))


def _write_all(file: int, data: bytes) -> None:
    """A short write (a full disk, a signal) must not leave half a line in the middle of the file."""
    while data:
        data = data[os.write(file, data) :]
