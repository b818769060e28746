"""The commit rule under random schedules of faults: nobody disagrees, nothing is counted twice or lost, it always ends.

A schedule is played from its seed: `play(seed, TURNS)` repeats it exactly.
"""

import pytest

from tests.unit.fleet_simulation.mutants import MUTANTS, put_in
from tests.unit.fleet_simulation.truth import Violation
from tests.unit.fleet_simulation.world import play
from trainer.data.ledger import LedgerError

TURNS = 300


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_members_agree_and_every_sample_counts_once_through_any_faults(first):
    for seed in range(first, first + 10):
        print(f"seed {seed}")
        play(seed, TURNS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.rule)
def test_a_broken_rule_is_found(mutant):
    """Known seeds. Where a change of the machine shifts them, the exploration below prints new ones."""
    with put_in(mutant), pytest.raises((Violation, LedgerError)) as found:
        play(mutant.seed, TURNS)
    print(f"rule {mutant.rule}, seed {mutant.seed}: {found.value}")
    play(mutant.seed, TURNS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.rule)
def test_exploring_finds_each_broken_rule(mutant):
    with put_in(mutant):
        for seed in range(1000):
            try:
                play(seed, TURNS)
            except Exception as found:
                print(f"rule {mutant.rule}, seed {seed}: {found}")
                return
    pytest.fail(f"1000 schedules without rule {mutant.rule} and nothing was found")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_a_longer_exploration(first):
    for seed in range(first, first + 100):
        print(f"seed {seed}")
        play(seed, 900)
