"""What is wrong with an inventory is said in one sentence that names the host and the cure."""

import pytest

from tests.unit.ansible_code import filters

problems = filters("inventory").inventory_problems
visible = filters("inventory").visible_devices

GOOD = {
    "ap-1": {"ansible_host": "10.1.0.1", "region": "ap"},
    "eu-1": {"ansible_host": "10.2.0.1", "region": "eu"},
}


def judged(subnet="10.88.0.0/24", port=51820, **changes):
    hosts = {name: {**about} for name, about in GOOD.items()}
    for name, change in changes.items():
        hosts.setdefault(name.replace("_", "-"), {}).update(change)
    return problems(list(hosts), hosts, subnet, port, "inventory.ini")


def test_a_good_inventory_has_no_problem():
    assert judged() == []
    assert (
        judged(ap_1={"mesh_endpoint": "none", "devices": 2, "cuda_visible_devices": (0, 2), "price_per_hour": 0.8})
        == []
    )
    assert judged(ap_1={"mesh_endpoint": "[2a01:4f8::1]:51820", "mesh_mtu": 1380, "mesh_address": "10.88.0.9"}) == []


def test_no_hosts_says_which_file_to_copy():
    assert problems([], {}, "10.88.0.0/24", 51820, "inventory.ini") == [
        "inventory.ini: no host in the group [hosts]. Copy inventory.example.ini to inventory.ini and name yours."
    ]


BAD = [
    ({"ap_1": {"region": ""}}, "ap-1: region is missing"),
    ({"ap_1": {"ansible_host": "203.0.113.10"}}, "ap-1: ansible_host = 203.0.113.10 is an address for examples"),
    ({"ap_1": {"ansible_port": 99999}}, "ap-1: ansible_port = 99999: must be a number from 1 to 65535"),
    ({"ap_1": {"ansible_port": 0}}, "ap-1: ansible_port = 0: must be a number from 1 to 65535"),
    ({"ap_1": {"ansible_port": "ssh"}}, "ap-1: ansible_port = 'ssh'"),
    ({"ap_1": {"ansible_host": "10.2.0.1"}}, "ap-1 and eu-1 have one address, ansible_host = 10.2.0.1:22"),
    ({"AP1": {"ansible_host": "10.3.0.1", "region": "ap"}}, "AP1: the name must be a-z, 0-9"),
    ({"ap_1": {"mesh_address": "10.99.0.1"}}, "ap-1: mesh_address = '10.99.0.1': must be an address inside"),
    ({"ap_1": {"mesh_address": "10.88.0.0"}}, "ap-1: mesh_address = '10.88.0.0'"),
    ({"ap_1": {"mesh_address": "10.88.0.255"}}, "ap-1: mesh_address = '10.88.0.255'"),
    ({"ap_1": {"mesh_address": "fd00::1"}}, "ap-1: mesh_address = 'fd00::1'"),
    ({"ap_1": {"mesh_address": "10.88.0.7/24"}}, "ap-1: mesh_address = '10.88.0.7/24'"),
    (
        {"ap_1": {"mesh_address": "10.88.0.7"}, "eu_1": {"mesh_address": "10.88.0.7"}},
        "ap-1 and eu-1 have one mesh_address = 10.88.0.7",
    ),
    ({"ap_1": {"mesh_endpoint": "a b"}}, "ap-1: mesh_endpoint = 'a b'"),
    ({"ap_1": {"mesh_endpoint": "1.2.3.4:0"}}, "ap-1: mesh_endpoint = '1.2.3.4:0'"),
    (
        {"ap_1": {"mesh_endpoint": "none"}, "eu_1": {"mesh_endpoint": "none"}},
        "ap-1 and eu-1 cannot meet: both have mesh_endpoint = none",
    ),
    (
        {"ap_1": {"mesh_endpoint": "1.2.3.4:51820"}, "eu_1": {"mesh_endpoint": "1.2.3.4:51820"}},
        "ap-1 and eu-1 have one mesh_endpoint = 1.2.3.4:51820",
    ),
    ({"ap_1": {"mesh_mtu": 576}}, "ap-1: mesh_mtu = 576: must be a number from 1280 to 9000"),
    ({"ap_1": {"price_per_hour": "1,20"}}, "ap-1: price_per_hour = '1,20'"),
    ({"ap_1": {"price_per_hour": -1}}, "ap-1: price_per_hour = -1"),
    ({"ap_1": {"devices": 0}}, "ap-1: devices = 0: must be a number from 1 to 64"),
    ({"ap_1": {"devices": "two"}}, "ap-1: devices = 'two'"),
    ({"ap_1": {"devices": 2, "cuda_visible_devices": "0,1,2"}}, "ap-1: devices = 2, but cuda_visible_devices names 3"),
    ({"ap_1": {"cuda_visible_devices": "0,0"}}, "ap-1: cuda_visible_devices = '0,0': a device is empty or named twice"),
    ({"ap_1": {"cuda_visible_devices": "0,"}}, "ap-1: cuda_visible_devices = '0,'"),
]


@pytest.mark.parametrize(("changes", "sentence"), BAD, ids=[sentence[:50] for _, sentence in BAD])
def test_each_mistake_is_one_sentence_that_names_the_host(changes, sentence):
    found = judged(**changes)
    assert len(found) == 1, found
    assert found[0].startswith(f"inventory.ini: {sentence}")
    assert "\n" not in found[0]


@pytest.mark.parametrize("subnet", ["10.88.0.0/31", "10.88.0.0/24x", "fd00::/64", "10.88.0.1/24"])
def test_a_subnet_that_cannot_hold_the_hosts_is_refused(subnet):
    assert judged(subnet=subnet)[0].startswith(f"mesh_subnet = {subnet!r}: must be an IPv4 network with room for 2")


def test_a_large_subnet_is_not_listed(monkeypatch):
    def listed(self):
        raise AssertionError("lists every address")

    monkeypatch.setattr("ipaddress.IPv4Network.hosts", listed)
    assert judged(subnet="10.0.0.0/8", ap_1={"mesh_address": "10.200.0.7"}) == []


def test_a_port_of_the_mesh_that_is_none_is_refused():
    assert judged(port="wg") == ["mesh_port = 'wg': must be a number from 1 to 65535."]


def test_two_hosts_behind_one_address_are_told_apart_by_port():
    assert judged(ap_1={"ansible_host": "10.2.0.1", "ansible_port": 40022, "mesh_endpoint": "10.2.0.1:40820"}) == []


def test_devices_are_read_as_an_ini_inventory_gives_them():
    assert visible((0, 2)) == visible("0,2") == visible("0, 2") == ["0", "2"]
    assert visible(3) == ["3"]
    assert visible(None) == visible("") == []
