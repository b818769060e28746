"""The emulated WAN through the kernel, between two hosts of a bed."""

import json
import subprocess
from contextlib import suppress

import pytest

from tests.testbed.bed import bed
from tests.testbed.plan import THREE, Links
from tests.testbed.wait import wait_for
from tests.testbed.wan.client import Client

pytestmark = pytest.mark.docker
RTT_MS = 60.0


@pytest.fixture(scope="module")
def pair(shop, plan_named):
    links = Links({"ap-eu": RTT_MS})
    with bed(shop, plan_named("wan", regions=THREE[:2], image="plain", links=links)) as made:
        yield made


@pytest.fixture
def ap(pair):
    return pair.hosts["ap-1"]


@pytest.fixture
def eu(pair):
    return pair.hosts["eu-1"].placed.address


def ping_ms(host, to, count=3):
    """Mean round trip; None where nothing came back."""
    code, output = host.container.exec_run(["ping", "-q", "-i", "0.1", "-W", "1", "-c", str(count), to])
    return float(output.decode().split("rtt")[1].split("/")[4]) if code == 0 else None


def link(pair, name="ap-1>eu-1"):
    return pair.wan.stats()[name]


def test_the_round_trip_is_what_the_bed_was_asked_for(ap, eu):
    assert ping_ms(ap, eu, 5) == pytest.approx(RTT_MS, abs=8)


def test_every_packet_is_seen(pair, ap, eu):
    before = link(pair)["packets"]
    ap.run(["ping", "-q", "-f", "-c", "500", eu])
    assert link(pair)["packets"] - before == 500
    pair.wan.check_believable(late_ms=1000)


def test_a_partition_ends_when_its_block_is_left_by_an_error(pair, ap, eu):
    with suppress(RuntimeError), pair.wan.partition("ap-1"):
        assert ping_ms(ap, eu, 1) is None
        raise RuntimeError
    wait_for(lambda: ping_ms(ap, eu), "the partition is over", within_s=10)


def test_a_deaf_host_still_speaks(pair, ap, eu):
    with pair.wan.deaf("ap-1"):
        before = link(pair)["packets"]
        assert ping_ms(ap, eu, 1) is None
        assert link(pair)["packets"] > before
        assert link(pair)["blocked"] is False
        assert link(pair, "eu-1>ap-1")["blocked"] is True


def test_a_delay_holds_for_its_block_only(pair, ap, eu):
    with pair.wan.delayed("ap-1>eu-1", one_way_ms=RTT_MS / 2 + 200):
        assert ping_ms(ap, eu) == pytest.approx(RTT_MS + 200, abs=15)
    assert ping_ms(ap, eu) == pytest.approx(RTT_MS, abs=8)


def test_a_throttled_link_carries_that_much_and_no_more(pair, ap, eu):
    with pair.wan.throttled("ap-1>eu-1", rate_mbit_s=1.0):
        # 40 packets of 1028 bytes are 0.33 s at 1 Mbit/s; at the link's 100 they would be 3 ms
        ap.run(["ping", "-q", "-l", "40", "-c", "40", "-s", "1000", eu])
    stamps = ap.run(["ping", "-q", "-c", "1", eu])
    assert "0% packet loss" in stamps


def test_a_timed_fault_ends_by_itself(pair):
    with Client(pair.wan.socket) as client:
        client.fault("*", for_s=0.3, blocked=True)
        assert client.stats()["ap-1>eu-1"]["blocked"] is True
        wait_for(lambda: client.stats()["ap-1>eu-1"]["blocked"] is False, "the fault is over", within_s=10)


def test_a_bad_request_is_answered_and_harms_nothing(pair):
    with Client(pair.wan.socket) as client:
        with pytest.raises(ValueError, match="delay_ms must be a number"):
            client.set("ap-1>eu-1", delay_ms="x")
        assert client.stats()["ap-1>eu-1"]["delay_ms"] == RTT_MS / 2


def test_what_was_done_to_the_links_is_in_the_log(pair):
    with pair.wan.lossy("ap-1>eu-1", loss_pct=1.0):
        pass

    def ended():
        events = [json.loads(line) for line in (pair.folder / "wan" / "wan.jsonl").read_text().splitlines()]
        return [event["event"] for event in events[-2:]] == ["fault", "fault_end"]

    wait_for(ended, "fault and its end", within_s=10)


def test_the_emulator_ends_with_its_bed(shop, plan_named):
    with bed(shop, plan_named("brief", regions=THREE[:1], image="plain")) as made:
        folder = str(made.folder / "wan")
        running = lambda: folder in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout  # noqa: E731
        assert running() or made.wan.stats()
    wait_for(lambda: not running(), "the emulator's process has ended", within_s=10)
