"""The noise scale is what it is defined to be: trace of the covariance over the squared norm of the true gradient."""

import random

import pytest

from trainer.metrics.noise import NoiseScale


def test_the_estimate_comes_near_the_true_value_of_known_noise():
    chance = random.Random(7)
    dimensions, signal, deviation = 64, 0.5, 2.0
    true = dimensions * deviation**2 / (dimensions * signal**2)
    scale = NoiseScale(decay=0.999)
    for _ in range(4000):
        weights, sums = [8.0, 8.0, 16.0], []
        for weight in weights:
            sums.append([weight * signal + chance.gauss(0, deviation) * weight**0.5 for _ in range(dimensions)])
        norms = [sum(x * x for x in one) ** 0.5 for one in sums]
        total = [sum(column) / sum(weights) for column in zip(*sums, strict=True)]
        scale.add(norms, weights, sum(x * x for x in total) ** 0.5)
    assert scale.value == pytest.approx(true, rel=0.1)


def test_one_replica_alone_cannot_tell():
    scale = NoiseScale()
    scale.add([3.0], [8.0], 0.4)
    scale.add([3.0, 0.0], [8.0, 0.0], 0.4)
    assert scale.value is None
