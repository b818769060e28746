"""Gradient noise scale from the replicas' norms: says when a larger global batch stops paying.

McCandlish et al. 2018 (arXiv:1812.06162), appendix A.1: the squared norm of a mean over few samples is larger than that
of a mean over many by noise / samples. Both sides are averaged over steps before they are divided.
"""

from __future__ import annotations

from collections.abc import Sequence


class NoiseScale:
    """`add` once a step; `value` in units of weight (tokens or samples), None until it can be told."""

    def __init__(self, decay: float = 0.95) -> None:
        self._decay = decay
        self._signal = self._noise = 0.0  # moving averages of |G|² and of the trace of the covariance

    def add(self, norms: Sequence[float], weights: Sequence[float], total_norm: float) -> None:
        """norms: of each replica's sum; total_norm: of the mean over all. Replicas without weight do not count."""
        shares = [(norm, weight) for norm, weight in zip(norms, weights, strict=True) if weight > 0]
        if len(shares) < 2:
            return
        big = sum(weight for _, weight in shares)
        small = len(shares) / sum(1.0 / weight for _, weight in shares)  # noise adds up by 1 / weight
        small_square = sum((norm / weight) ** 2 for norm, weight in shares) / len(shares)
        signal = (big * total_norm**2 - small * small_square) / (big - small)
        noise = (small_square - total_norm**2) / (1.0 / small - 1.0 / big)
        self._signal = self._decay * self._signal + (1.0 - self._decay) * signal
        self._noise = self._decay * self._noise + (1.0 - self._decay) * noise

    @property
    def value(self) -> float | None:
        return self._noise / self._signal if self._signal > 0 and self._noise > 0 else None
