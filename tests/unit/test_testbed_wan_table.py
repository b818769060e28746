"""All links of an emulated WAN: patterns, and faults that stack and end."""

from random import Random

import pytest

from tests.testbed.plan import Links, Placed
from tests.testbed.router import table
from tests.testbed.wan.table import Table

CONFIG = {
    "nodes": {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3"},
    "default": {"delay_ms": 40},
    "links": {"a>b": {"delay_ms": 75}, "*>c": {"loss_pct": 1}},
}


@pytest.fixture
def events():
    return []


@pytest.fixture
def links(events):
    return Table(CONFIG, lambda **event: events.append(event), Random(1))


def parameters(links, name):
    return links.links[name].parameters


def test_every_ordered_pair_has_a_link_with_the_most_special_values(links):
    assert len(links.links) == 6
    assert (parameters(links, "a>b").delay_ms, parameters(links, "b>a").delay_ms) == (75, 40)
    assert (parameters(links, "b>c").loss_pct, parameters(links, "c>b").loss_pct) == (1, 0)


def test_faults_stack_and_end_without_touching_what_was_set(links):
    links.fault(1, "a>*", {"blocked": True})
    links.fault(2, "a>b", {"delay_ms": 500})
    links.set("a>b", {"rate_mbit_s": 100})
    links.unfault(1, "test")
    now = parameters(links, "a>b")
    assert (now.blocked, now.delay_ms, now.rate_mbit_s) == (False, 500, 100)
    links.unfault(2, "test")
    assert parameters(links, "a>b").delay_ms == 75
    links.heal()
    assert parameters(links, "a>b").rate_mbit_s == 0


def test_every_change_is_in_the_log(links, events):
    links.fault(7, "a>b", {"blocked": True})
    links.unfault(7, "client gone")
    links.unfault(7, "again: nothing happens")
    assert [event["event"] for event in events] == ["fault", "fault_end"]


def test_a_link_that_is_not_there_is_named_with_those_that_are(links):
    with pytest.raises(ValueError, match="no link matches 'a>z'; links: a>b"):
        links.set("a>z", {"delay_ms": 1})


def test_a_bed_has_half_of_each_round_trip_in_each_direction():
    sites = [
        Placed(n, r, "", "", "", "", n, "", "") for n, r in (("ap-1", "ap"), ("eu-1", "eu"), ("control", "control"))
    ]
    made = Table(table(sites, Links()), lambda **event: None, Random(1))
    assert parameters(made, "ap-1>eu-1").delay_ms == parameters(made, "eu-1>ap-1").delay_ms == 90
    assert parameters(made, "control>ap-1").delay_ms == 75
    assert parameters(made, "eu-1>ap-1").rate_mbit_s == 100
