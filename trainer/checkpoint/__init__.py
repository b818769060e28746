"""What a run needs to go on: `TrainState`, and its way to the disk, back, and to a host that has none."""

from trainer.checkpoint.state import Best, Snapshot, TrainState
from trainer.checkpoint.store import CheckpointStore, Stored

__all__ = ["Best", "CheckpointStore", "Snapshot", "Stored", "TrainState"]
