"""Random numbers as a function of where a run is, so that no generator's state has to be saved.

PyTorch's generators are seeded at each window's start. What a resumed run draws is what the run that was never stopped
would have drawn. Streams that are not PyTorch's (a model's own process-wide generator) are saved with the state.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import torch


class RandomStream(Protocol):
    """A generator that is not part of a model's own state but must go on over a resume."""

    def state_dict(self) -> dict[str, Any]:
        """JSON values from which `load_state_dict` goes on."""

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def window_seed(seed: int, window: int, replica: int) -> int:
    """63 bits for window `window` (counted over the run, skipped ones too) of `replica`."""
    digest = hashlib.blake2b(f"{seed}/{window}/{replica}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def begin_window(seed: int, window: int, replica: int) -> None:
    """Seed PyTorch's generators, of the CPU and of the GPUs in use.

    Not by `torch.manual_seed`: on a machine without a GPU it formats and keeps a stack trace for each kind of device
    that might come up later, at every call.
    """
    drawn = window_seed(seed, window, replica)
    torch.default_generator.manual_seed(drawn)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(drawn)
