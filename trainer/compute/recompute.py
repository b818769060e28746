"""Activation checkpointing that draws the same random numbers twice and advances no stream twice.

`torch.utils.checkpoint` restores PyTorch's generators for the second pass; this adds the streams it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch.utils.checkpoint import checkpoint

from trainer.compute.randomness import RandomStream


def recompute(function: Callable[..., Any], *args: Any, streams: Sequence[RandomStream] = ()) -> Any:
    """`function(*args)` without keeping its activations; backward computes them again with the same draws."""
    return checkpoint(function, *args, use_reentrant=False, context_fn=lambda: _contexts(streams))


def _contexts(
    streams: Sequence[RandomStream],
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    before: list[dict[str, Any]] = []

    @contextmanager
    def first() -> Iterator[None]:
        before.extend(stream.state_dict() for stream in streams)
        yield

    @contextmanager
    def again() -> Iterator[None]:
        now = [stream.state_dict() for stream in streams]
        for stream, state in zip(streams, before, strict=True):
            stream.load_state_dict(state)
        try:
            yield
        finally:
            for stream, state in zip(streams, now, strict=True):
                stream.load_state_dict(state)

    return first(), again()
