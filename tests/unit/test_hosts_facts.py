"""Readers of a host's state, plans and messages made of it, and tables of drivers."""

import pytest

from tests.unit.ansible_code import filters, reader

hosts, gpus = filters("hosts"), filters("gpus")
system, software, network, gpu, wanted = (reader(n) for n in ("system", "software", "network", "gpu", "wanted"))
NEEDS = {
    "systems": ["debian 12", "ubuntu 24.04"],
    "clock_off_s": 120,
    "disk_free_bytes": 4 << 30,
    "memory_bytes": 1 << 30,
    "mesh_subnet": "10.88.0.0/24",
}


def card(**changes):
    about = {
        "name": "eu-1",
        "os": {"id": "debian", "version": "12", "pretty": "Debian 12"},
        "root": True,
        "systemd": True,
        "clock_s": 1000.0,
        "disk": {"path": "/var/lib", "free": 50 << 30},
        "memory_bytes": 8 << 30,
        "docker": {"kind": "none", "config": {}},
        "mesh": {"kernel_module": "missing", "tun": True},
        "network": {"mtu": 1500, "taken": ["10.5.0.7/24", "192.168.1.0/24"]},
    }
    return about | changes


def test_a_good_host_has_no_problem():
    assert hosts.host_problems(card(), NEEDS, 1010.0) == []


PROBLEMS = {
    "runs Arch Linux": {"os": {"id": "arch", "version": "", "pretty": "Arch Linux"}},
    "runs an unknown system": {"os": {"id": "", "version": "", "pretty": ""}},
    "we are not root there": {"root": False},
    "has no systemd": {"systemd": False},
    "its clock is +3600 s off": {"clock_s": 4600.0},
    "its clock is -900 s off": {"clock_s": 100.0},
    "/var/lib has 1.0 GiB free": {"disk": {"path": "/var/lib", "free": 1 << 30}},
    "has 0.5 GiB of memory": {"memory_bytes": 1 << 29},
    "its Docker is snap's": {"docker": {"kind": "snap", "config": {}}},
    "/etc/docker/daemon.json is not a JSON object": {"docker": {"kind": "none", "config": None}},
    "its own network 10.88.0.5/16 meets mesh_subnet 10.88.0.0/24": {"network": {"taken": ["10.88.0.5/16"]}},
    "has neither WireGuard in its kernel nor /dev/net/tun": {"mesh": {"kernel_module": "missing", "tun": False}},
}


@pytest.mark.parametrize(("sentence", "change"), PROBLEMS.items(), ids=PROBLEMS)
def test_a_host_that_cannot_be_used_is_named_with_the_reason(sentence, change):
    found = hosts.host_problems(card(**change), NEEDS, 1000.0)
    assert len(found) == 1 and found[0].startswith(f"eu-1: {sentence}")


CONNECTIONS = {
    "its SSH key is not the one": {"unreachable": True, "msg": "Host key verification failed."},
    "cannot be reached": {"unreachable": True, "msg": "connect to host 10.0.0.1 port 22: Connection timed out"},
    "SSH refuses our key": {"unreachable": True, "msg": "root@10.0.0.1: Permission denied (publickey)."},
    "ansible_user cannot become root": {"failed": True, "msg": "Missing sudo password"},
    "has no Python 3": {"failed": True, "module_stderr": "/bin/sh: 1: /usr/bin/python3: not found"},
    "its facts could not be read: boom": {"failed": True, "msg": "boom"},
}


@pytest.mark.parametrize(("sentence", "result"), CONNECTIONS.items(), ids=CONNECTIONS)
def test_a_host_that_cannot_be_read_is_named_with_the_cure(sentence, result):
    assert hosts.connection_problems({"ap-1": {"changed": False}, "eu-1": result})[0].startswith(f"eu-1: {sentence}")


def test_packages_are_told_missing_by_name_or_alternative():
    assert hosts.missing_from(["a", "b|c", "d|e"], {"c": "1"}) == ["a", "d"]


def test_tables_are_read_from_the_release_to_the_default():
    table = {"debian-13": 1, "debian": 2, "default": 3}
    assert [
        hosts.by_os(table, {"id": i, "version": v, "pretty": ""})
        for i, v in (("debian", "13"), ("debian", "12"), ("ubuntu", "24.04"))
    ] == [1, 2, 3]
    with pytest.raises(ValueError, match="no entry for Arch"):
        hosts.by_os({"debian": 1}, {"id": "arch", "version": "", "pretty": "Arch"})


def test_kernel_settings_that_cannot_be_set_are_skipped_with_a_word():
    facts = {
        "bbr": "loaded",
        "fq": "missing",
        "sysctls": {
            "a": {"value": "1", "settable": True},
            "b": {"value": "0", "settable": True},
            "ro": {"value": "0", "settable": False},
            "cc": {"value": "cubic", "settable": True},
            "q": {"value": "pfifo", "settable": True},
        },
    }
    here = hosts.kernel_settings({"a": "1", "b": "1", "ro": "1", "none": "1", "cc": "bbr", "q": "fq"}, facts)
    assert here["set"] == {"a": "1", "b": "1", "cc": "bbr"}
    assert here["apply"] == {"b": "1", "cc": "bbr"}
    assert set(here["skipped"]) == {"ro", "none", "q"} and "read-only" in here["skipped"]["ro"]


def test_a_step_of_a_plan_is_a_sentence_or_nothing():
    assert hosts.step("install", ["a", "b"]) == ["install a, b"]
    assert hosts.step("start Docker", True) == ["start Docker"]
    assert hosts.step("install", []) == hosts.step("start", False) == hosts.step("start", "False") == []


def test_units_are_masked_only_where_they_are():
    services = {"a.timer": {"load": "loaded", "enabled": "enabled"}, "b.timer": {"load": "masked", "enabled": "masked"}}
    assert hosts.maskable(services, ["a.timer", "b.timer", "c.service"]) == ["a.timer"]


def test_package_states_are_read_from_dpkg():
    installed, held = software.parse_packages(
        "ii \tcurl\t7.88\nhi \tdocker.io\t20.10\nrc \tgone\t1.0\niU \thalf\t2.0\n"
    )
    assert installed == {"curl": "7.88", "docker.io": "20.10"}
    assert held == ["docker.io"]


def test_units_are_read_from_systemctl():
    units = software.parse_units(
        "Id=a.service\nActiveState=active\nUnitFileState=enabled\nMainPID=7\nNeedDaemonReload=yes\n\nId=b.service\nLoadState=not-found\n"
    )
    assert units["a.service"] == {"load": "", "active": "active", "enabled": "enabled", "reload": True, "pid": 7}
    assert units["b.service"]["load"] == "not-found"


def test_the_port_of_ssh_is_found_behind_sudo():
    assert network.connection_port(["PATH=/bin\0", "HOME=/\0SSH_CONNECTION=1.2.3.4 5555 10.0.0.1 2222\0"]) == 2222
    assert network.connection_port(["PATH=/bin\0"]) is None


def test_our_own_networks_do_not_count_as_taken():
    links = [
        {"ifname": "eth0", "addr_info": [{"family": "inet", "local": "10.5.0.7", "prefixlen": 24}]},
        {"ifname": "docker0", "addr_info": [{"family": "inet", "local": "10.89.0.1", "prefixlen": 24}]},
        {"ifname": "gf0", "addr_info": [{"family": "inet", "local": "10.88.0.1", "prefixlen": 24}]},
    ]
    routes = [
        {"dst": "default", "dev": "eth0"},
        {"dst": "10.7.0.0/16", "dev": "eth0"},
        {"dst": "10.89.0.0/24", "dev": "docker0"},
    ]
    assert network.taken_networks(links, routes) == ["10.5.0.7/24", "10.7.0.0/16"]


@pytest.mark.parametrize(
    ("text", "system_id"),
    [
        ('ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12"\n', "debian"),
        ("# nothing\nID='ubuntu'\n", "ubuntu"),
        ("", ""),
    ],
)
def test_the_system_is_read_from_os_release(text, system_id):
    assert system.parse_os_release(text)["id"] == system_id


def test_gpus_are_found_by_their_pci_id_without_a_driver(tmp_path):
    for address, vendor, kind, device in [
        ("0000:01:00.0", "0x10de", "0x030200", "0x20b0"),
        ("0000:01:00.1", "0x10de", "0x040300", "0x1aef"),
        ("0000:02:00.0", "0x8086", "0x030000", "0x1234"),
    ]:
        folder = tmp_path / "bus/pci/devices" / address
        folder.mkdir(parents=True)
        for name, value in (("vendor", vendor), ("class", kind), ("device", device)):
            (folder / name).write_text(value + "\n")
    assert gpu.gpus(str(tmp_path)) == [{"address": "0000:01:00.0", "device_id": "20b0", "bound_to": ""}]
    assert gpu.driver(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("13c2", "Maxwell"),
        ("1b80", "Pascal"),
        ("15f8", "Pascal"),
        ("1db4", "Volta"),
        ("1eb8", "Turing"),
        ("20b0", "Ampere"),
        ("2204", "Ampere"),
        ("2330", "Hopper"),
        ("2684", "Ada"),
        ("2901", "Blackwell"),
        ("2b85", "Blackwell"),
        ("0a20", "older"),
    ],
)
def test_the_generation_follows_from_the_device_id(device, name):
    assert gpus.generation(device) == name


def plan(devices, system_id="debian", driver=None, branch=580):
    facts = {"gpus": [{"device_id": d} for d in devices], "driver": driver, "os": {"id": system_id, "version": ""}}
    return gpus.driver_plan(facts, branch, 525)


def test_the_driver_follows_from_generation_and_system():
    assert plan([]) == {"packages": [], "refused": ""}
    assert plan(["20b0"], driver="580.95.05") == {"packages": [], "refused": ""}
    assert "too old" in plan(["20b0"], driver="470.1")["refused"]
    assert plan(["20b0"], "ubuntu")["packages"] == ["nvidia-driver-580-server-open"]
    assert plan(["1db4"], "ubuntu")["packages"] == ["nvidia-driver-580-server"]
    assert "nvidia-open-kernel-dkms" in plan(["2901"])["packages"]
    assert "no driver carries Blackwell and Volta" in plan(["2901", "1db4"])["refused"]
    assert "older" in plan(["0a20"])["refused"]


SEEN = {"kind": "file", "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", "mode": "0644"}
SEEN |= {"owner": "root", "group": "root", "uid": 0, "gid": 0}


def test_a_file_is_compared_by_content_mode_and_owner():
    want = {"dest": "/x", "state": "file", "content": "hello", "mode": "0644", "owner": "root", "group": "0"}
    assert not wanted.differs(want, SEEN)
    for change in ({"content": "hellx"}, {"mode": "0600"}, {"owner": "1"}, {"state": "absent"}, {"state": "directory"}):
        assert wanted.differs(want | change, SEEN)
    assert wanted.differs(want, None) and not wanted.differs(want | {"state": "absent"}, None)


def test_what_facts_do_not_watch_is_not_trusted_to_them():
    patterns = ["/etc/gradferry/**", "/etc/docker/daemon.json", "/etc/systemd/system/gradferry-*"]
    assert wanted.is_watched("/etc/gradferry/a/b.json", patterns)
    assert wanted.is_watched("/etc/systemd/system/gradferry-x.service", patterns)
    assert not wanted.is_watched("/etc/hosts", patterns)


def test_the_fact_card_is_one_line_a_host():
    one = card(region="eu", kernel="6.1", cpus=2, gpus=[{"device_id": "20b0"}], driver=None, network={"mtu": 1500})
    one |= {"mesh": {"mtu": 1420}, "docker": {"version": "20.10"}}
    heading, line = hosts.fact_table([one])
    assert line.split() == [
        "eu-1",
        "eu",
        "debian",
        "12",
        "6.1",
        "2",
        "8",
        "GiB",
        "20b0",
        "none",
        "50",
        "GiB",
        "1500/1420",
        "20.10",
    ]
    assert heading.index("driver") == line.index("none")
