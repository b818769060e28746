"""What can go wrong with the test bed itself, in words for whoever starts it."""

from trainer.errors import GradferryError


class BedError(GradferryError):
    """The bed cannot be made, found or reached; first line complete by itself, then the cure."""


class WaitedTooLong(BedError):
    """A condition did not come true in its time."""
