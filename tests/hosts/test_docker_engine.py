"""The engine: settings of ours beside the user's, networks that meet nobody, no restart under a trainer."""

import json

import pytest

pytestmark = pytest.mark.docker


def test_logs_are_bounded_and_networks_are_our_own(cluster):
    settings = json.loads(cluster.hosts["ap-1"].read("/etc/docker/daemon.json"))
    assert settings["log-opts"] == {"max-file": "3", "max-size": "10m"}
    assert settings["live-restore"] is True
    assert "inet 10.89.0.1/24" in cluster.hosts["ap-1"].run("ip addr show docker0")


def test_new_settings_wait_while_a_trainer_runs_and_are_taken_afterwards(cluster, provision):
    host = cluster.hosts["ap-1"]
    host.run("systemd-run --unit=gradferry-trainer --collect sleep 600")
    engine = host.run("systemctl show -p MainPID docker")
    wish = '{"docker_engine_registry_mirrors": ["https://mirror.example"]}'
    said = provision("-e", wish).check()
    assert "ap-1 trains: Docker takes its new settings" in said.output
    assert host.run("systemctl show -p MainPID docker") == engine
    host.run("systemctl stop gradferry-trainer")
    taken = provision("-e", wish).check()
    assert "restart Docker for its settings" in taken.output
    assert "mirror.example" in host.run("docker info")
    provision().check()


def test_a_network_of_the_host_is_not_taken_for_containers(cluster, provision):
    host = cluster.hosts["na-1"]
    host.run("ip link add lan0 type veth peer name lan1; ip addr add 10.89.5.1/24 dev lan0; ip link set lan0 up")
    try:
        provision("--tags", "docker_engine", "--limit", "na-1").check()
        assert json.loads(host.read("/etc/docker/daemon.json"))["bip"] == "172.30.0.1/24"
    finally:
        host.run("ip link del lan0")
    provision().check()
