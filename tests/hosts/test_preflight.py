"""What is wrong with inventory or hosts is said in a line, with status 2, before anything is touched."""

import pytest

pytestmark = pytest.mark.docker
PREFLIGHT = "playbooks/preflight.yml"
ETC = "find /etc -type f -exec sha256sum {} + | sort"


@pytest.fixture
def inventory_with(cluster, tmp_path):
    """`inventory_with("eu-1", "region=eu", "")`: the cluster's inventory with a text replaced in a host's line."""

    def changed(host: str, text: str, by: str):
        lines = cluster.inventory.read_text().splitlines()
        assert any(line.startswith(host) and text in line for line in lines)
        lines = [line.replace(text, by) if line.startswith(host) else line for line in lines]
        path = tmp_path / "inventory.ini"
        path.write_text("\n".join(lines))
        return path

    return changed


def play(cluster, inventory, tmp_path, *arguments):
    caller = cluster.ansible(tmp_path)
    return type(caller)(caller.folder, inventory, tmp_path).play(PREFLIGHT, *arguments)


def test_a_good_cluster_passes_and_nothing_changes(cluster, tmp_path):
    assert play(cluster, cluster.inventory, tmp_path).check().changed == 0


@pytest.mark.parametrize(
    ("text", "by", "sentence"),
    [
        ("region=eu", "", "inventory.ini: eu-1: region is missing"),
        ("region=eu", "region=eu ansible_port=0", "inventory.ini: eu-1: ansible_port = 0"),
        ("region=eu", "region=eu mesh_mtu=5", "inventory.ini: eu-1: mesh_mtu = 5"),
    ],
)
def test_a_mistake_in_the_inventory_is_said_before_anything_connects(
    cluster, inventory_with, tmp_path, text, by, sentence
):
    outcome = play(cluster, inventory_with("eu-1", text, by), tmp_path)
    assert outcome.code == 2
    assert sentence in outcome.output
    assert "TASK [host_facts" not in outcome.output


def test_an_empty_inventory_says_which_file_to_copy(cluster, tmp_path):
    path = tmp_path / "inventory.ini"
    path.write_text("[hosts]\n")
    outcome = play(cluster, path, tmp_path)
    assert outcome.code == 2
    assert "no host in the group [hosts]. Copy inventory.example.ini" in outcome.output


def test_an_unreachable_host_is_named_and_the_others_are_not_touched(cluster, inventory_with, tmp_path):
    cluster.hosts["ap-1"].run("rm -f /etc/sysctl.d/60-gradferry.conf")
    before = cluster.hosts["ap-1"].run(ETC)
    caller = cluster.ansible(tmp_path)
    broken = inventory_with("eu-1", "region=eu", "region=eu ansible_port=2")
    outcome = type(caller)(caller.folder, broken, tmp_path).play("playbooks/provision.yml", "-T", "3")
    assert outcome.code == 2
    assert "eu-1: cannot be reached" in outcome.output
    assert cluster.hosts["ap-1"].run(ETC) == before
    caller.play("playbooks/provision.yml", name="again").check()


def test_an_unknown_system_is_one_line(cluster, tmp_path):
    host = cluster.hosts["na-1"]
    host.run("cp -L /etc/os-release /run/kept; rm /etc/os-release")
    host.run("printf 'ID=arch\\nPRETTY_NAME=\"Arch Linux\"\\n' >/etc/os-release")
    try:
        outcome = play(cluster, cluster.inventory, tmp_path)
        assert outcome.code == 2
        assert "na-1: runs Arch Linux; what we can set up: debian 12, debian 13, ubuntu" in outcome.output
    finally:
        host.run("cp /run/kept /etc/os-release")


@pytest.fixture
def ops_on_eu(cluster):
    """A user without rights on eu-1 who has our key."""
    host = cluster.hosts["eu-1"]
    host.run("useradd --create-home --shell /bin/bash ops; cp -r /root/.ssh /home/ops/; chown -R ops: /home/ops/.ssh")
    yield host
    host.run("rm -f /etc/sudoers.d/ops; pkill -KILL -u ops; userdel --remove ops || true")


def test_a_user_who_may_not_become_root_is_named(cluster, ops_on_eu, inventory_with, tmp_path):
    outcome = play(cluster, inventory_with("eu-1", "region=eu", "region=eu ansible_user=ops"), tmp_path)
    assert outcome.code == 2
    assert "eu-1: ansible_user cannot become root" in outcome.output


def test_a_user_with_sudo_is_as_good_as_root_and_the_port_of_ssh_is_seen(cluster, ops_on_eu, inventory_with, tmp_path):
    ops_on_eu.run("echo 'ops ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ops")
    inventory = inventory_with("eu-1", "region=eu", "region=eu ansible_user=ops")
    caller = cluster.ansible(tmp_path)
    again = type(caller)(caller.folder, inventory, tmp_path).play("playbooks/provision.yml", "-vv").check()
    assert again.changed == 0, "the firewall's revision is made of the ports: the same ones were found behind sudo"


def test_a_gpu_is_seen_by_its_pci_id_and_its_driver_is_foretold(cluster, tmp_path):
    host = cluster.hosts["na-1"]
    device = "/root/sysfs/bus/pci/devices/0000:01:00.0"
    host.run(f"mkdir -p {device}; cd {device}; echo 0x10de >vendor; echo 0x030200 >class; echo 0x2330 >device")
    caller = cluster.ansible(tmp_path)
    try:
        foretold = caller.play("playbooks/provision.yml", "--check", "-e", "host_facts_sysfs_root=/root/sysfs").check()
        assert "install nvidia-open-kernel-dkms, nvidia-driver" in foretold.output
        assert "install nvtop" in foretold.output
        assert "no NVIDIA GPU here" in foretold.output, "the others have none, and pass"
    finally:
        host.run("rm -r /root/sysfs")
