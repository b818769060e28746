"""Nothing under a run is upgraded while it is on, and only what we held is let go."""

import json

import pytest

pytestmark = pytest.mark.docker
THAW = """
- hosts: hosts
  gather_facts: false
  become: true
  tasks:
    - {name: Read, ansible.builtin.import_role: {name: host_facts}}
    - {name: Thaw, ansible.builtin.import_role: {name: maintenance_freeze}, vars: {maintenance_freeze_state: thawed}}
"""


def test_an_upgrade_in_mid_run_is_held_back(cluster):
    host = cluster.hosts["eu-1"]
    held = host.run("apt-mark showhold").split()
    assert {"docker.io", "containerd", "runc"} <= set(held)
    assert not host.succeeds("DEBIAN_FRONTEND=noninteractive apt-get install -y --no-download --reinstall docker.io")


def test_thawing_lets_go_of_what_was_held_by_us_and_of_nothing_else(cluster, provision, tmp_path):
    host = cluster.hosts["eu-1"]
    host.run("apt-mark hold sudo")
    provision().check()
    assert json.loads(host.read("/etc/gradferry-host/freeze.json"))["packages"] == ["containerd", "docker.io", "runc"]
    playbook = cluster.workshop.folders.ansible / "playbooks" / ".thaw-test.yml"
    playbook.write_text(THAW)
    try:
        cluster.ansible(tmp_path).play(f"playbooks/{playbook.name}", name="thaw").check()
        assert host.run("apt-mark showhold").split() == ["sudo"]
        assert host.read("/etc/gradferry-host/freeze.json") is None
        assert cluster.ansible(tmp_path).play(f"playbooks/{playbook.name}", name="again").check().changed == 0
    finally:
        playbook.unlink()
        host.run("apt-mark unhold sudo")
    provision().check()
    assert "docker.io" in host.run("apt-mark showhold")
