"""From any state to the described one: what is damaged is named, then repaired; what is as described is left alone."""

import pytest

from tests.testbed.bed import bed
from tests.testbed.plan import THREE
from tests.testbed.wait import wait_for

pytestmark = pytest.mark.docker

# What is broken on a host; what the plan must say of it; what must hold afterwards.
DAMAGES = {
    "ap-1": [
        ("rm /etc/sysctl.d/60-gradferry.conf", "write /etc/sysctl.d/60-gradferry.conf", None),
        (
            "sysctl -qw net.ipv4.tcp_keepalive_time=7200",
            "set net.ipv4.tcp_keepalive_time=60",
            "test $(sysctl -n net.ipv4.tcp_keepalive_time) = 60",
        ),
        ("nft delete table inet gradferry", "load firewall table", "nft list table inet gradferry"),
        ("echo >>/etc/gradferry-host/firewall.nft", "write /etc/gradferry-host/firewall.nft", None),
        ("systemctl stop docker.socket docker", "start Docker", "systemctl is-active -q docker"),
    ],
    "eu-1": [
        (
            "systemctl -q disable gradferry-firewall",
            "load firewall table",
            "systemctl -q is-enabled gradferry-firewall",
        ),
        (
            "chmod 644 /etc/wireguard/gf0.conf",
            "write /etc/wireguard/gf0.conf",
            "test $(stat -c %a /etc/wireguard/gf0.conf) = 600",
        ),
        (
            "wg set gf0 peer $(wg show gf0 peers | head -1) remove",
            "change peers",
            "test $(wg show gf0 peers | wc -l) = 2",
        ),
        (
            "echo '{\"debug\": true}' >/etc/docker/daemon.json",
            "write /etc/docker/daemon.json",
            "grep -q debug /etc/docker/daemon.json && docker info | grep -q 'Debug Mode: true'",
        ),
        ("apt-mark unhold docker.io", "hold docker.io", "apt-mark showhold | grep -qx docker.io"),
    ],
    "na-1": [
        ("systemctl stop wg-quick@gf0", "bring up gf0", "wg show gf0"),
        ("rm -r /etc/systemd/system/wg-quick@gf0.service.d", "write /etc/systemd/system/wg-quick@gf0.service.d", None),
        ("rm /etc/gradferry-host/freeze.json", "write /etc/gradferry-host/freeze.json", None),
        (
            "rm /etc/apt/apt.conf.d/99gradferry-freeze",
            "write /etc/apt/apt.conf.d/99gradferry-freeze",
            "test -s /etc/apt/apt.conf.d/99gradferry-freeze",
        ),
    ],
}
EVERYTHING = "find /etc -type f -not -name machine-id -exec sha256sum {} + | sort; nft list tables; wg show gf0 peers"


def test_a_second_run_changes_nothing_and_leaves_the_roles_out(provision):
    outcome = provision().check()
    assert outcome.changed == 0
    assert "TASK [docker_engine" not in outcome.output
    assert "Fact card" in outcome.output


def test_what_is_damaged_is_foretold_by_check_then_repaired(cluster, provision):
    for host, damages in DAMAGES.items():
        for command, _, _ in damages:
            cluster.hosts[host].run(command)
    before = {name: host.run(EVERYTHING + " || true") for name, host in cluster.hosts.items()}
    foretold = provision("--check", "--diff").check()
    assert {name: host.run(EVERYTHING + " || true") for name, host in cluster.hosts.items()} == before
    repaired = provision().check()
    for host, damages in DAMAGES.items():
        assert foretold.recaps[host].changed and repaired.recaps[host].changed
        for command, sentence, holds in damages:
            assert sentence in foretold.output and sentence in repaired.output, command
            assert holds is None or cluster.hosts[host].succeeds(holds), command
    assert provision().check().changed == 0


def test_a_role_can_be_run_alone_by_its_tag(cluster, provision):
    cluster.hosts["ap-1"].run("rm /etc/sysctl.d/60-gradferry.conf /etc/apt/apt.conf.d/99gradferry-freeze")
    outcome = provision("--tags", "kernel_network").check()
    assert "TASK [kernel_network : Write" in outcome.output and "TASK [docker_engine : Write" not in outcome.output
    assert cluster.hosts["ap-1"].succeeds("test -f /etc/sysctl.d/60-gradferry.conf")
    assert not cluster.hosts["ap-1"].succeeds("test -f /etc/apt/apt.conf.d/99gradferry-freeze")
    provision().check()


def test_a_reboot_needs_no_playbook(cluster, provision):
    cluster.hosts["eu-1"].reboot()
    host = cluster.hosts["eu-1"]
    host.wait_for(
        lambda: host.succeeds("wg show gf0 && nft list table inet gradferry"), "mesh and firewall", within_s=60
    )
    host.wait_for(lambda: host.succeeds("docker info"), "engine", within_s=60)
    assert provision().check().changed == 0


def test_a_plain_host_becomes_ready_even_when_a_first_run_is_killed(shop, plan_named, tmp_path):
    with bed(shop, plan_named("plain", regions=THREE[:1], image="plain")) as made:
        host = made.hosts["ap-1"]
        assert not host.succeeds("command -v docker")
        foretold = made.ansible(tmp_path).play("playbooks/provision.yml", "--check", "--diff", name="check").check()
        assert "install" in foretold.output and not host.succeeds("command -v docker || command -v nft")
        with made.ansible(tmp_path).start("playbooks/provision.yml", name="killed") as running:
            wait_for(lambda: running.reached("Write the interface"), "half of it is done", within_s=300)
            running.process.kill()
        made.ansible(tmp_path).play("playbooks/provision.yml", name="first").check()
        assert host.succeeds("docker info && wg show gf0 && nft list table inet gradferry")
        assert "docker.io" in host.run("apt-mark showhold")
        assert made.ansible(tmp_path).play("playbooks/provision.yml", name="second").check().changed == 0
