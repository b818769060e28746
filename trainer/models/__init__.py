"""Models by name. A model maps a micro-batch to sums: the loss over everything scored, and how much that was."""

from trainer.models.catalogue import CATALOGUE, build
from trainer.models.probe import probe
from trainer.models.scored import IGNORED, Batch, Scored, score, take

__all__ = ["CATALOGUE", "IGNORED", "Batch", "Scored", "build", "probe", "score", "take"]
