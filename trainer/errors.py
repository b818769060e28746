"""What a user can get wrong, one class a cause.

Every message has at most three lines: place, field or host, what was seen, what is allowed, the cure. The first line is
complete by itself. `cli.main` prints it and exits with 2; nobody who can fix the cause sees a traceback.

    GradferryError
    ├── ConfigError        run.yml, overrides, inventory values
    ├── DataError          packed data: missing, damaged, of another kind
    ├── ModelError         a factory that is not there, raises, or returns something else
    ├── CheckpointError    a checkpoint that does not fit or is damaged
    ├── TrainingError      training that cannot go on: nothing but non-finite gradients, a sample larger than memory
    ├── HostError          a host that is not as it must be
    └── ComeBack           not the user's fault: a peer went away; the service manager starts us again
"""

EXIT_USER = 2
EXIT_COME_BACK = 75  # EX_TEMPFAIL: `Restart=on-failure` starts the process again


class GradferryError(Exception):
    """A message for a person: `what` is complete by itself, `cure` says what to do about it."""

    exit_code = EXIT_USER

    def __init__(self, what: str, cure: str = "") -> None:
        super().__init__(what)
        self.what, self.cure = what, cure

    def __str__(self) -> str:
        return f"{self.what}\n  {self.cure}" if self.cure else self.what


class ConfigError(GradferryError):
    """A setting that is unknown, of the wrong type, out of range, or in contradiction with another."""


class DataError(GradferryError):
    """Packed data that is missing, damaged or of another kind than the model reads."""


class ModelError(GradferryError):
    """A model factory that cannot be found, raises, or returns something that does not train."""


class CheckpointError(GradferryError):
    """A checkpoint that is truncated, altered, of another model, or of a newer format."""


class TrainingError(GradferryError):
    """Training that cannot go on as it is set up: starting it again would end at the same place."""


class HostError(GradferryError):
    """A host that is not as it must be before anything is changed on it."""


class ComeBack(GradferryError):
    """A peer was lost or is not there yet. Nothing is wrong here: start again and meet the others."""

    exit_code = EXIT_COME_BACK
