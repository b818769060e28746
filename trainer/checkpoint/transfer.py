"""Agreeing on the checkpoint to go on from, and giving it to the hosts that do not have it.

Files travel as bytes in chunks and are checked against the manifest's sha256 before they count. Nothing is unpickled.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from trainer.checkpoint.manifest import Manifest
from trainer.checkpoint.store import CheckpointStore, Stored
from trainer.errors import CheckpointError, ComeBack

CHUNK_BYTES = 4 << 20


class Peers(Protocol):
    """What is needed of an exchange (trainer/sync, one floor up, implements it)."""

    rank: int
    world: int

    def gather(self, mine: bytes) -> list[bytes]: ...

    def send(self, data: Tensor, to: int) -> None: ...

    def receive(self, data: Tensor, source: int) -> None: ...


@dataclass(frozen=True)
class Choice:
    """The checkpoint that all go on from. holders: ranks that have exactly it. manifest: of the lowest of them."""

    step: int
    manifest: Manifest
    holders: tuple[int, ...]


def choose(mine: Stored | None, peers: Peers) -> Choice | None:
    """The newest step that any rank has; None where no rank has any. Where two of that step differ, the lowest
    rank's counts."""
    offer = {"manifest": mine.manifest.text() if mine else None}
    offers = [json.loads(text)["manifest"] for text in peers.gather(json.dumps(offer).encode())]
    manifests = [None if text is None else Manifest.parse(text, f"rank {r}") for r, text in enumerate(offers)]
    best = max((m.step for m in manifests if m is not None), default=None)
    if best is None:
        return None
    chosen = next(m for m in manifests if m is not None and m.step == best)
    return Choice(
        best, chosen, tuple(r for r, m in enumerate(manifests) if m is not None and m.digest == chosen.digest)
    )


def hand_out(
    choice: Choice, store: CheckpointStore, peers: Peers, *, writes: bool, beat: Callable[[], None] = lambda: None
) -> tuple[Stored, int]:
    """Give `choice` to every rank that lacks it and `writes` (one per host); returns it, and the rank it came from.

    Raises ComeBack where a received file does not have the manifest's sha256, CheckpointError where the disk is full.
    """
    lacking = [int(r) for r in peers.gather(str(peers.rank).encode() if _needs(choice, peers, writes) else b"") if r]
    stored = Stored(choice.step, store.path(choice.step), choice.manifest)
    source = peers.rank
    for index, receiver in enumerate(lacking):
        giver = choice.holders[index % len(choice.holders)]
        if peers.rank == giver:
            _give(stored, peers, receiver, beat)
        elif peers.rank == receiver:
            source = giver
            _take(choice, store, peers, giver, beat)
    peers.gather(b"done")  # ranks that read a neighbour's folder wait until it is there
    return stored, source


def _needs(choice: Choice, peers: Peers, writes: bool) -> bool:
    return writes and peers.rank not in choice.holders


def _give(stored: Stored, peers: Peers, receiver: int, beat: Callable[[], None]) -> None:
    for name in stored.manifest.files:
        with (stored.folder / name).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                peers.send(torch.frombuffer(bytearray(chunk), dtype=torch.uint8), receiver)
                beat()


def _take(choice: Choice, store: CheckpointStore, peers: Peers, giver: int, beat: Callable[[], None]) -> None:
    def fill(folder: Path) -> None:
        for name, (size, _) in choice.manifest.files.items():
            with (folder / name).open("wb") as file:
                for start in range(0, size, CHUNK_BYTES):
                    chunk = torch.empty(min(CHUNK_BYTES, size - start), dtype=torch.uint8)
                    peers.receive(chunk, giver)
                    file.write(chunk.numpy().tobytes())
                    beat()

    try:
        store.add(choice.step, fill, expect=choice.manifest)
    except CheckpointError as error:
        raise ComeBack(f"rank {peers.rank}: the checkpoint received from rank {giver} is damaged: {error}") from None
    except OSError as error:
        raise CheckpointError(
            f"{store.folder}: the checkpoint of step {choice.step} cannot be stored: {error.strerror or error}",
            "Free some space on this host",
        ) from None
