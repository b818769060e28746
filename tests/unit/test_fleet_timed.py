"""Real members, away policy and proposing in simulated time: what a cut costs, and that it always goes on."""

import random
from itertools import pairwise

import pytest

from tests.unit.fleet_simulation.timed import Fleet, Setting
from trainer.data.spans import union
from trainer.sync.commit.member import Phase


def longest_gap_s(fleet: Fleet, begin_s: float, end_s: float) -> float:
    times = [begin_s, *(t for t, _ in fleet.commits if begin_s <= t <= end_s), end_s]
    return max(b - a for a, b in pairwise(times))


def to_the_end(fleet: Fleet, within_s: float) -> None:
    fleet.run(fleet.now_s + within_s, lambda: fleet.truth.ledgers[-1].complete)
    assert fleet.truth.ledgers[-1].complete, f"step {fleet.truth.step} after {fleet.now_s:.0f} s"
    fleet.truth.check_end()


def test_three_hosts_train_together_and_every_step_is_one_global_batch():
    fleet = Fleet(Setting(samples=240), seed=1)
    to_the_end(fleet, 60)
    steps = [union(*(w.read for c in r.contributions for w in c.windows)) for r in fleet.truth.records if r.weight]
    assert steps == [((start, start + 12),) for start in range(0, 240, 12)]
    assert all(w.base == r.step for r in fleet.truth.records for c in r.contributions for w in c.windows)


@pytest.mark.parametrize("one_way", [False, True], ids=["both ways", "one way"])
def test_a_host_that_is_cut_off_costs_the_others_a_moment_and_its_work_is_merged_when_it_is_back(one_way):
    fleet = Fleet(Setting(samples=800), seed=2)
    fleet.run(10.0)
    fleet.isolate("na")
    if one_way:
        fleet.cut = {(a, b) for a, b in fleet.cut if a == "na"}
    fleet.run(25.0)
    assert longest_gap_s(fleet, 10.0, 25.0) <= 3.0 + 0.5 + 0.5  # and one window and one exchange
    away = fleet.processes["na"]
    assert away.node.member.phase == Phase.OUT
    assert len([t for t in away.windows if t > 12.0]) >= 20  # local mode: its device was not idle
    fleet.cut.clear()
    fleet.run(35.0)
    assert away.node.member.full
    assert away.node.name in fleet.board.members
    assert not fleet.truth.dropped.get(away.node.name)
    assert longest_gap_s(fleet, 25.0, 35.0) <= 2.5
    to_the_end(fleet, 100)


def test_a_newcomer_whose_state_takes_a_minute_joins_and_members_do_not_wait_for_it():
    fleet = Fleet(Setting(samples=1000, window_s=0.8, transfer_s=60.0), seed=3)
    fleet.run(10.0)
    fleet.boot("sa", None)
    fleet.run(80.0)
    newcomer = fleet.processes["sa"].node
    assert newcomer.name in fleet.board.members
    assert newcomer.member.full
    assert longest_gap_s(fleet, 10.0, 80.0) <= 2.5
    to_the_end(fleet, 120)
    assert any(c.windows for r in fleet.truth.records for c in r.contributions if c.member == newcomer.name)


def test_a_host_that_stays_away_over_the_bound_gives_its_chunks_back_and_its_sums_are_void():
    fleet = Fleet(Setting(samples=650), seed=4)
    fleet.run(15.0)
    fleet.isolate("ap")
    name = fleet.processes["ap"].node.name
    to_the_end(fleet, 200)
    assert name not in fleet.board.members
    fleet.cut.clear()
    fleet.run(fleet.now_s + 10.0)
    assert fleet.processes["ap"].node.member.full
    assert fleet.truth.dropped[name]


def test_a_process_that_dies_comes_back_as_a_new_member_and_its_samples_are_read_again():
    fleet = Fleet(Setting(samples=700), seed=5)
    fleet.run(15.0)
    checkpoint = fleet.processes["eu"].node.member.ledger
    fleet.kill("eu")
    fleet.run(20.0)
    fleet.boot("eu", checkpoint)
    to_the_end(fleet, 120)


def test_after_a_crash_of_all_the_run_goes_on_from_the_best_state_of_any_host():
    fleet = Fleet(Setting(samples=360), seed=6)
    fleet.run(12.0)
    old = fleet.processes["ap"].node.member.ledger
    fleet.run(20.0)
    best = fleet.processes["na"].node.member.ledger
    for host in fleet.setting.hosts:
        fleet.kill(host)
    fleet.run(25.0)
    for host, checkpoint in {"ap": old, "eu": old, "na": best}.items():
        fleet.boot(host, checkpoint)
    fleet.run(45.0)
    assert (fleet.board.incarnation.number, fleet.board.incarnation.step) == (2, best.step)
    assert len(fleet.board.members) == 3
    to_the_end(fleet, 100)


def test_a_restart_does_not_wait_for_ever_for_a_host_that_is_gone():
    fleet = Fleet(Setting(samples=150), seed=7)
    fleet.run(10.0)
    checkpoint = fleet.processes["ap"].node.member.ledger
    for host in fleet.setting.hosts:
        fleet.kill(host)
    for host in ("ap", "eu"):
        fleet.boot(host, checkpoint)
    fleet.run(60.0)
    assert fleet.board.incarnation.number == 1
    fleet.run(100.0)
    assert fleet.board.incarnation.number == 2
    to_the_end(fleet, 200)


def _trouble(fleet: Fleet, dice: random.Random) -> None:
    """One fault, or the end of one."""
    host = dice.choice(sorted(fleet.processes))
    match dice.choice(["cut", "one way", "pair", "heal", "heal", "loss", "kill", "boot"]):
        case "cut":
            fleet.isolate(host)
        case "one way":
            fleet.cut.add((host, dice.choice(fleet.setting.hosts)))
        case "pair":
            other = dice.choice(fleet.setting.hosts)
            fleet.cut |= {(host, other), (other, host)}
        case "heal":
            fleet.cut.clear()
        case "loss":
            fleet.loss = dice.choice([0.0, 0.05, 0.3])
        case "kill" if len(fleet.processes) > 2:
            fleet.kill(host)
        case "boot":
            for missing in sorted({*fleet.setting.hosts} - fleet.processes.keys()):
                fleet.boot(missing, fleet.start)


def play_timed(seed: int) -> Fleet:
    dice = random.Random(seed)
    fleet = Fleet(Setting(samples=600, one_way_s=dice.choice([0.01, 0.08, 0.15])), seed)
    fleet.run(5.0)
    while fleet.now_s < 60.0 and not fleet.truth.ledgers[-1].complete:
        _trouble(fleet, dice)
        fleet.run(fleet.now_s + dice.uniform(0.2, 8.0), lambda: fleet.truth.ledgers[-1].complete)
    fleet.cut.clear()
    fleet.loss = 0.0
    for missing in sorted({*fleet.setting.hosts} - fleet.processes.keys()):
        fleet.boot(missing, fleet.start)
    quiet_s = fleet.now_s
    incarnation = fleet.board.incarnation.number
    fleet.run(quiet_s + 30.0, lambda: fleet.commits[-1][0] > quiet_s or fleet.truth.ledgers[-1].complete)
    restarted = fleet.board.incarnation.number > incarnation
    assert fleet.now_s - quiet_s < (22.0 if restarted else 10.0), f"{fleet.now_s - quiet_s:.1f} s without a commit"
    to_the_end(fleet, 300)
    return fleet


@pytest.mark.parametrize("seed", range(2))
def test_after_the_last_fault_a_commit_follows_and_the_run_comes_to_its_end(seed):
    play_timed(seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(100, 400, 20))
def test_a_longer_exploration_in_time(first):
    for seed in range(first, first + 20):
        print(f"seed {seed}")
        play_timed(seed)
