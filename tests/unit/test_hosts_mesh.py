"""Addresses on the mesh, its peers, and the networks that are left for containers."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.ansible_code import filters, reader

mesh, live_mesh, path = filters("mesh"), reader("mesh"), reader("path")
NAMES = st.lists(st.from_regex(r"[a-z]{1,3}-[0-9]", fullmatch=True), min_size=1, max_size=20, unique=True)


def about(names, **more):
    return {
        name: {"ansible_host": f"192.168.7.{n + 1}", "region": "r", **more.get(name, {})}
        for n, name in enumerate(names)
    }


@given(NAMES)
def test_every_host_has_an_address_of_its_own_inside_the_subnet(names):
    plan = mesh.mesh_plan(names, about(names), "10.88.0.0/24", 51820)
    addresses = [ipaddress.ip_address(peer["address"]) for peer in plan.values()]
    assert len(set(addresses)) == len(names)
    assert all(address in set(ipaddress.ip_network("10.88.0.0/24").hosts()) for address in addresses)


@given(NAMES, st.from_regex(r"[a-z]{4}-[0-9]", fullmatch=True), st.integers(0, 20))
def test_a_host_that_is_added_moves_at_most_one_that_wants_its_address(names, new, place):
    before = mesh.mesh_plan(names, about(names), "10.0.0.0/8", 51820)
    more = [*names[:place], new, *names[place:]]
    after = mesh.mesh_plan(more, about(more), "10.0.0.0/8", 51820)
    assert {name: before[name]["address"] for name in names} == {name: after[name]["address"] for name in names}


def test_a_full_subnet_is_filled_to_the_last_address():
    names = [f"h-{n}" for n in range(6)]
    plan = mesh.mesh_plan(names, about(names), "10.88.0.0/29", 51820)
    assert sorted(peer["address"] for peer in plan.values()) == [f"10.88.0.{n}" for n in range(1, 7)]


def test_an_address_that_is_given_is_kept_and_taken_from_nobody_else():
    names = ["a-1", "b-1"]
    wish = mesh.mesh_plan(names, about(names), "10.88.0.0/24", 51820)["a-1"]["address"]
    plan = mesh.mesh_plan(names, about(names, **{"b-1": {"mesh_address": wish}}), "10.88.0.0/24", 51820)
    assert plan["b-1"]["address"] == wish != plan["a-1"]["address"]


@pytest.mark.parametrize(
    ("given_", "endpoint"),
    [
        ({}, "192.168.7.1:51820"),
        ({"mesh_endpoint": "nat.example"}, "nat.example:51820"),
        ({"mesh_endpoint": "1.2.3.4:40820"}, "1.2.3.4:40820"),
        ({"mesh_endpoint": "2a01::1"}, "[2a01::1]:51820"),
        ({"mesh_endpoint": "[2a01::1]:7"}, "[2a01::1]:7"),
        ({"mesh_endpoint": "[2a01::1]"}, "[2a01::1]:51820"),
        ({"mesh_endpoint": "none"}, None),
    ],
)
def test_endpoints_come_from_the_inventory(given_, endpoint):
    plan = mesh.mesh_plan(["a"], about(["a"], a=given_), "10.88.0.0/24", 51820)
    assert plan["a"]["endpoint"] == endpoint


PEER = {"name": "b", "public_key": "KB", "address": "10.88.0.2", "endpoint": "1.2.3.4:51820"}
LIVE = {"allowed_ips": ["10.88.0.2/32"], "keepalive_s": 25, "endpoint": "1.2.3.4:51820", "handshake_age_s": 30}
CASES = {
    "as wanted": ([PEER], {"KB": LIVE}, []),
    "missing": ([PEER], {}, ["KB"]),
    "one too many": ([PEER], {"KB": LIVE, "KX": LIVE}, ["KX"]),
    "another key": ([PEER], {"KOLD": LIVE}, ["KOLD", "KB"]),
    "another address": ([PEER], {"KB": {**LIVE, "allowed_ips": ["10.88.0.3/32"]}}, ["KB"]),
    "another keepalive": ([PEER], {"KB": {**LIVE, "keepalive_s": 0}}, ["KB"]),
    "roamed and answers": ([PEER], {"KB": {**LIVE, "endpoint": "9.9.9.9:1"}}, []),
    "elsewhere and silent": ([PEER], {"KB": {**LIVE, "endpoint": "9.9.9.9:1", "handshake_age_s": None}}, ["KB"]),
    "cannot be called": ([{**PEER, "endpoint": None}], {"KB": {**LIVE, "endpoint": None, "handshake_age_s": None}}, []),
}


@pytest.mark.parametrize(("wanted", "live", "stale"), CASES.values(), ids=CASES)
def test_only_peers_that_differ_are_touched(wanted, live, stale):
    assert mesh.stale_peers(wanted, live, 25) == stale
    commands = live_mesh.peer_commands("gf0", wanted, live, 25)
    assert [command[4] for command in commands] == stale, "the plan and the deed name the same peers"


def test_a_dump_of_wg_is_read_without_its_private_key():
    own = "SECRET\tPUB\t51820\toff\n"
    heard = "KB\t(none)\t1.2.3.4:51820\t10.88.0.2/32\t1000\t5\t6\t25\n"
    silent = "KC\t(none)\t(none)\t(none)\t0\t0\t0\toff\n"
    seen = live_mesh.parse_dump(own + heard + silent, 1010.0)
    assert "SECRET" not in str(seen)
    assert (seen["live_key"], seen["port"]) == ("PUB", 51820)
    assert seen["peers"]["KB"]["handshake_age_s"] == 10
    assert seen["peers"]["KC"] == {"endpoint": None, "allowed_ips": [], "keepalive_s": 0, "handshake_age_s": None}


def test_a_host_that_is_away_keeps_the_key_that_the_interface_has_for_its_address():
    plan = mesh.mesh_plan(["a", "b"], about(["a", "b"]), "10.88.0.0/24", 51820)
    live = {"KOLD": {"allowed_ips": [f"{plan['b']['address']}/32"]}}
    facts = {"a": {"ansible_facts": {"gradferry": {"mesh": {"public_key": "KA"}}}}, "b": {}}
    assert mesh.mesh_keys(facts, plan, live) == {"a": "KA", "b": "KOLD"}
    made = {**facts, "b": {"wireguard_mesh_made": {"public_key": "KNEW"}}}
    assert mesh.mesh_keys(made, plan, live)["b"] == "KNEW"
    assert [peer["public_key"] for peer in mesh.mesh_peers(plan, "a", {"a": "KA", "b": None})] == []


def test_networks_of_containers_meet_nobody():
    candidates = ["10.89.0.0/16", "172.30.0.0/16"]
    assert mesh.engine_networks(candidates, ["192.168.1.0/24"])["bip"] == "10.89.0.1/24"
    assert mesh.engine_networks(candidates, ["10.89.7.0/24", "2a01::/64"])["bip"] == "172.30.0.1/24"
    with pytest.raises(ValueError, match=r"no free network for Docker"):
        mesh.engine_networks(candidates, ["10.0.0.0/8", "172.16.0.0/12"])


@given(st.integers(1200, 1600), st.integers(1280, 1420))
def test_the_mtu_is_found_to_eight_bytes_and_a_known_one_costs_few_packets(carried, now):
    asked = []
    found = path.largest_mtu(lambda size: asked.append(size) or size <= carried, now, 1420)
    if carried < 1280:
        assert found is None
    else:
        assert found <= carried and (found == 1420 or carried - found < path.GRAIN or found == now)
    if now <= carried < min(now + path.GRAIN, 1420):
        assert len(asked) <= 4
