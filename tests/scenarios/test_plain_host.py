"""A server as it is rented: systemd, sshd, Python and nothing else. No Docker, empty disks, no layer of any image."""

from __future__ import annotations

import pytest

from tests.scenarios.cluster import Cluster
from tests.testbed.bed import bed
from tests.testbed.plan import THREE
from trainer.records.checkers import EverySampleOnce
from trainer.records.verdict import check

pytestmark = pytest.mark.docker


def test_a_plain_host_is_set_up_trains_and_is_handed_back(shop, plan_named, tmp_path):
    with bed(shop, plan_named("plain", regions=THREE[:1], image="plain")) as made:
        cluster = Cluster(made, tmp_path)
        assert not made.hosts["ap-1"].succeeds("command -v docker")
        cluster.site()
        cluster.wait_until_it_trains(beyond=5)
        check(cluster.histories(), EverySampleOnce()).raise_unless_kept()
        places = (f"pull_folder={tmp_path / 'pulled'}", f"receipts_folder={tmp_path / 'receipts'}")
        cluster.play("playbooks/teardown.yml", "confirm=scenario", *places).check()
        assert (tmp_path / "receipts" / "ap-1.json").exists()
        assert not made.hosts["ap-1"].succeeds("docker ps -q --filter name=gradferry-trainer | grep .")
