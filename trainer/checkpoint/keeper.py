"""When and how a host's checkpoints are written: beside the training, one at a time, and without stopping it when the
disk is full."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer.checkpoint.state import TrainState, take_snapshot
from trainer.checkpoint.store import CheckpointStore, Stored
from trainer.checkpoint.transfer import Peers

_BEAT_S = 5.0


@dataclass(frozen=True)
class Written:
    """Outcome of one writing. stored: None where it failed, and then `reason` says why."""

    step: int
    stored: Stored | None
    seconds: float
    reason: str = ""


class Keeper:
    """Writes checkpoints of one host. `writes`: False on ranks whose neighbour on the host does it. `beat` is called
    while one is waited for."""

    def __init__(self, store: CheckpointStore, *, writes: bool, beat: Callable[[], None] = lambda: None) -> None:
        self._store, self._writes, self._beat = store, writes, beat
        self._thread: threading.Thread | None = None
        self._results: list[Written] = []

    def save(self, state: TrainState, peers: Peers) -> None:
        """Begin to write `state`; called by all replicas at one step. Waits for the one before, if need be."""
        self._begin(state, peers.world, _streams(state, peers))

    def save_alone(self, state: TrainState, world: int) -> None:
        """Write what is there after peers were lost, so that the next start loses nothing."""
        if not state.streams:  # theirs cannot be had any more
            self._begin(state, world, [])
            self.wait()

    def _begin(self, state: TrainState, world: int, streams: list[dict[str, Any]]) -> None:
        if not self._writes:
            return
        self.wait()
        began = time.perf_counter()
        snapshot = take_snapshot(state, world, streams)
        also = frozenset({state.best.step}) if state.inforce.run.checkpoint.keep_best else frozenset()
        keep = state.inforce.run.checkpoint.keep

        def write() -> None:
            try:
                stored = self._store.write(snapshot)
                self._store.keep(keep, also)
                self._results.append(Written(snapshot.step, stored, time.perf_counter() - began))
            except OSError as error:
                reason = error.strerror or str(error)
                self._results.append(Written(snapshot.step, None, time.perf_counter() - began, reason))

        self._thread = threading.Thread(target=write, name="gradferry-checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Until nothing is being written."""
        while self._thread is not None:
            self._thread.join(_BEAT_S)
            self._beat()
            if not self._thread.is_alive():
                self._thread = None

    def finished(self) -> list[Written]:
        """What was written, or failed, since the last call."""
        done, self._results = self._results, []
        return done


def _streams(state: TrainState, peers: Peers) -> list[dict[str, Any]]:
    """The streams of all replicas, so that every host writes the same file."""
    if not state.streams:
        return []
    mine = {name: stream.state_dict() for name, stream in state.streams.items()}
    return [json.loads(text) for text in peers.gather(json.dumps(mine).encode())]
