"""The test bed itself: hosts behave as new VPSes do, and nothing of a bed is left when it is taken down."""

import os
import re
import subprocess
import sys

import pytest

from tests.testbed.bed import bed, remove, up
from tests.testbed.errors import BedError
from tests.testbed.plan import THREE, Plan, Region
from tests.testbed.replace import lose, replace

pytestmark = pytest.mark.docker
TWO = THREE[:2]


@pytest.fixture(scope="module")
def pair(shop, plan_named):
    with bed(shop, plan_named("pair", regions=TWO, image="plain")) as made:
        yield made


def left_on_engine(shop, name):
    client, filters = shop.client, shop.owner(name).filters()
    containers = client.containers.list(all=True, filters=filters)
    return [*containers, *client.networks.list(filters=filters), *client.volumes.list(filters=filters)]


def test_a_plain_host_is_a_booted_machine_without_docker_that_takes_ssh(pair):
    host = pair.hosts["ap-1"]
    host.wait_for(lambda: "running" in host.ssh("systemctl is-system-running || true"), "booted", within_s=30)
    assert host.ssh("hostname").strip() == "ap-1"
    assert not host.succeeds("command -v docker")


def test_each_host_has_an_identity_of_its_own(pair):
    ids = {host.run("cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub") for host in pair.hosts.values()}
    assert len(ids) == 2


def test_packages_come_by_the_default_route_and_peers_through_the_wan(pair):
    routes = pair.hosts["ap-1"].run("ip route")
    eu = pair.hosts["eu-1"].placed
    assert f"{eu.subnet} via {pair.hosts['ap-1'].placed.router}" in routes
    assert re.search(r"^default via ", routes, re.M)


def test_a_reboot_keeps_disk_identity_and_routes(pair):
    host = pair.hosts["eu-1"]
    before = host.run("touch /var/lib/mark; cat /etc/machine-id; ip route | sort")
    host.reboot()
    assert host.run("cat /etc/machine-id; ip route | sort") == before
    assert host.succeeds("test -e /var/lib/mark")
    assert host.ssh("hostname").strip() == "eu-1"


@pytest.mark.parametrize("disk", ["kept", "lost"])
def test_a_replaced_host_is_a_new_machine_with_or_without_the_data_disk(pair, disk):
    host = pair.hosts["ap-1"]
    host.run("install -d -o 10001 -g 10001 /var/lib/gradferry/history; touch /var/lib/gradferry/history/a /root/other")
    before = host.run("cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub")
    lose(pair, "ap-1")
    replace(pair, "ap-1", disk=disk)
    assert host.run("cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub") != before
    assert host.succeeds("test -e /var/lib/gradferry/history/a") == (disk == "kept")
    assert disk == "lost" or host.run("stat -c %u /var/lib/gradferry/history").strip() == "10001"
    assert not host.succeeds("test -e /root/other")


def test_beds_side_by_side_do_not_meet_and_leave_nothing(shop, plan_named, pair):
    plan = plan_named("other", regions=(Region("ap-1", "ap"),), image="plain")
    with bed(shop, plan) as other:
        mine, theirs = pair.hosts["ap-1"].placed, other.hosts["ap-1"].placed
        assert mine.subnet != theirs.subnet
        assert not other.hosts["ap-1"].succeeds(f"ping -c 1 -W 1 {mine.address}")
    assert left_on_engine(shop, plan.name) == []
    assert not (shop.folders.beds / plan.name).exists()
    assert pair.hosts["ap-1"].succeeds("true")


def test_a_bed_that_cannot_be_made_leaves_nothing(shop, plan_named):
    plan = plan_named("broken", regions=(Region("bad name", "ap"),), image="plain")
    with pytest.raises(Exception, match="bad name"):
        up(shop, plan)
    assert left_on_engine(shop, plan.name) == []


def test_a_second_bed_of_the_same_name_is_refused_and_the_first_one_stays(shop, pair):
    with pytest.raises(BedError, match="there already"):
        up(shop, Plan(pair.state.name, TWO))
    assert pair.hosts["ap-1"].succeeds("true")


def test_taking_down_what_is_not_there_is_no_error(shop):
    assert remove(shop, "never-made") == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="the vantage point needs root")
def test_from_the_vantage_point_every_host_is_150_ms_away(pair):
    before = pair.ansible_from_afar(pair.folder).before
    address = pair.hosts["eu-1"].placed.address
    script = f"import socket, time; t = time.monotonic(); socket.create_connection(('{address}', 22));"
    script += "print(time.monotonic() - t)"
    shown = subprocess.run([*before, sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert float(shown) == pytest.approx(0.150, abs=0.015)
