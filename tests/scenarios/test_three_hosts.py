"""Three hosts on three continents live through what can happen to them. They start with Docker and the image's layers.

One cluster for all of it, in the order of the file: a cluster is dear. What comes later needs only that it trains.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.scenarios.cluster import Cluster
from tests.testbed.bed import bed
from tests.testbed.replace import lose, replace
from tests.testbed.workshop import Workshop
from trainer.records.checkers import EverySampleOnce, StepsWithoutGap
from trainer.records.events import Ended, Evaluated, Resumed, Settings, Started
from trainer.records.redeploy import NoStepLost
from trainer.records.verdict import check

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def cluster(shop: Workshop, plan_named, tmp_path_factory) -> Iterator[Cluster]:
    with bed(shop, plan_named("three")) as made:
        cluster = Cluster(made, tmp_path_factory.mktemp("three"))
        cluster.site()
        cluster.wait_until_it_trains(beyond=0)
        yield cluster


def test_a_second_run_of_site_changes_nothing(cluster: Cluster):
    again = cluster.site(name="second")
    assert {host: recap.changed for host, recap in again.recaps.items() if recap.changed} == {}


def test_a_refused_setting_leaves_the_run_as_it_was(cluster: Cluster):
    before = cluster.statuses()
    refused = cluster.play("playbooks/redeploy.yml", "accum_steps=0", name="refused")
    assert refused.code != 0
    assert "accumulation.accum_steps = 0: input should be greater than or equal to 1" in refused.output
    assert {h: s.revision for h, s in cluster.statuses().items()} == {h: s.revision for h, s in before.items()}
    cluster.wait_until_it_trains(beyond=cluster.step())


def test_new_accumulation_settings_are_taken_up_by_all_at_one_step_without_restart(cluster: Cluster):
    changed = cluster.play("playbooks/redeploy.yml", "accum_steps=8", name="redeploy").check()
    cluster.wait_for(lambda: all(s.accum_steps == 8 for s in cluster.statuses().values()), "accum_steps 8 everywhere")
    cluster.wait_until_it_trains(beyond=cluster.step())
    histories = cluster.histories()
    check(histories, NoStepLost(changed.started)).raise_unless_kept()
    taken = {e.event.step for e in histories.entries if isinstance(e.event, Settings) and e.t >= changed.started}
    assert len(taken) == 1
    assert {s.global_batch for s in cluster.statuses().values()} == {192}


def test_a_plain_site_says_that_it_returns_to_the_run_file_and_does(cluster: Cluster):
    back = cluster.site(name="back")
    assert "accumulation.accum_steps" in back.output and "8 -> 4" in back.output.replace("→", "->")
    cluster.wait_for(lambda: all(s.accum_steps == 4 for s in cluster.statuses().values()), "accum_steps 4 everywhere")
    cluster.check_promises()


def test_a_trainer_that_is_killed_comes_back_and_no_sample_is_lost_or_repeated(cluster: Cluster):
    step = cluster.wait_until_it_trains(beyond=cluster.step() + 2)
    killed = cluster.bed.hosts["eu-1"].kill("gradferry trai[n]")
    assert killed
    cluster.wait_until_it_trains(beyond=step + 5)
    cluster.check_promises()


def test_a_host_that_reboots_comes_back_whole_by_itself(cluster: Cluster):
    step = cluster.step()
    cluster.bed.hosts["na-1"].reboot()
    cluster.wait_until_it_trains(beyond=step + 5)
    cluster.check_promises()


def test_the_first_host_is_lost_with_its_disk_and_a_bare_one_takes_its_place(cluster: Cluster):
    step = cluster.step()
    cluster.histories()  # what ap-1 wrote is lost with its disk; its peers' witness remains
    lose(cluster.bed, "ap-1")
    replace(cluster.bed, "ap-1", disk="lost")
    stranger = cluster.play("site.yml", name="stranger")
    assert stranger.code != 0
    assert "replaced=ap-1" in stranger.output
    cluster.site("replaced=ap-1", name="replaced")
    cluster.wait_until_it_trains(beyond=step + 5)
    cluster.check_promises()


def test_a_host_is_replaced_and_its_disk_moves_with_it(cluster: Cluster):
    step = cluster.step()
    lose(cluster.bed, "eu-1")
    replace(cluster.bed, "eu-1", disk="kept")
    cluster.site("replaced=eu-1", name="moved")
    cluster.wait_until_it_trains(beyond=step + 5)
    cluster.check_promises()


def test_teardown_leaves_receipts_and_three_new_hosts_go_on_from_what_was_pulled(cluster: Cluster):
    pulled, receipts = cluster.folder / "pulled", cluster.folder / "receipts"
    places = (f"pull_folder={pulled}", f"receipts_folder={receipts}")
    unsure = cluster.play("playbooks/teardown.yml", *places, name="unsure")
    assert unsure.code != 0  # nobody there to confirm
    step = cluster.wait_until_it_trains(beyond=cluster.step())
    before = cluster.histories()
    cluster.play("playbooks/teardown.yml", "confirm=scenario", *places, name="teardown").check()
    cluster.play("playbooks/teardown.yml", "confirm=scenario", *places, name="teardown-again").check()
    written = {path.stem: json.loads(path.read_text()) for path in receipts.glob("*.json")}
    assert set(written) == set(cluster.bed.hosts)
    for name, host in cluster.bed.hosts.items():
        assert host.read("/etc/wireguard/gf0.key") is None, f"{name} still holds a key"
        assert not host.succeeds("test -e /var/lib/gradferry/checkpoints"), f"{name} still holds checkpoints"

    for name in cluster.bed.hosts:
        replace(cluster.bed, name, disk="lost")
    every = [f"replaced={','.join(cluster.bed.hosts)}", f"resume={pulled}"]
    cluster.site(*every, name="resume")
    cluster.wait_until_it_trains(beyond=step + 20)  # beyond an evaluation
    after = cluster.histories()
    check(after, EverySampleOnce(), StepsWithoutGap()).raise_unless_kept()
    assert any(isinstance(e.event, Resumed) and e.event.step >= step for e in after.entries)
    assert _accuracy(after) >= _accuracy(before) - 0.05


def test_no_trainer_ever_ended_by_an_error_of_its_user(cluster: Cluster):
    entries = cluster.histories().entries
    assert sum(isinstance(e.event, Started) for e in entries) > 3
    assert not [e for e in entries if isinstance(e.event, Ended) and e.event.code == 2]


def _accuracy(histories) -> float:
    return [e.event.accuracy for e in histories.entries if isinstance(e.event, Evaluated)][-1]
