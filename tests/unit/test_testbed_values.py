"""What the test bed decides without an engine: addresses, names, image contents, recaps."""

from dataclasses import replace
from ipaddress import IPv4Network
from itertools import islice
from random import Random

from tests.testbed.addresses import POOL, free_sites, routed_networks
from tests.testbed.image_build import Recipe
from tests.testbed.labels import BED, Owner
from tests.testbed.plan import Links, Placed, State, load_state
from tests.testbed.playbook import Recap, recaps

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""

OUTPUT = """\
TASK [something] ****
ok: [ap-1]

PLAY RECAP *********************************************************************
ap-1                       : ok=12   changed=3    unreachable=0    failed=0    skipped=4    rescued=0    ignored=0
localhost                  : ok=2    changed=1    unreachable=0    failed=1    skipped=0    rescued=0    ignored=0

"""

DOCKERFILE = (
    "ARG ROOTFS\nFROM ${ROOTFS} AS base\nRUN a\n\n# why\nFROM base AS plain\nRUN b\n\nFROM plain AS ready\nRUN c\n"
)


def test_a_new_site_overlaps_nothing_that_is_in_use():
    used = [IPv4Network("10.192.0.0/11"), IPv4Network("10.230.7.0/24")]
    for site in islice(free_sites(used, Random(3)), 200):
        assert site.network.subnet_of(POOL)
        assert not any(site.network.overlaps(other) for other in used)


def test_a_full_pool_gives_no_site():
    assert list(free_sites([POOL], Random(3))) == []


def test_routes_of_this_machine_are_in_use_but_for_the_default():
    assert routed_networks(ROUTES) == [IPv4Network("172.17.0.0/16")]


def test_beds_of_two_clones_have_no_name_in_common():
    one, other = Owner("aaaa11112222", "local"), Owner("bbbb11112222", "local")
    assert one.prefix != other.prefix
    assert one.labels("host")[BED] == "local"
    assert len(Owner("aaaa11112222").filters()["label"]) == 1


def test_an_image_is_built_anew_when_its_own_part_changes_and_only_then():
    plain, ready = Recipe("plain", DOCKERFILE, "x"), Recipe("ready", DOCKERFILE, "x")
    changed = DOCKERFILE.replace("RUN c", "RUN d")
    assert replace(plain, dockerfile=changed).tag == plain.tag
    assert replace(ready, dockerfile=changed).tag != ready.tag
    assert replace(ready, dockerfile=DOCKERFILE.replace("RUN a", "RUN z")).tag != ready.tag
    assert replace(ready, rootfs="y").tag != ready.tag
    assert replace(ready, dockerfile=DOCKERFILE.replace("# why", "# because")).tag == ready.tag


def test_a_recap_is_read_for_every_host_and_an_output_without_one_gives_none():
    assert recaps(OUTPUT) == {"ap-1": Recap(12, 3, 0, 0), "localhost": Recap(2, 1, 1, 0)}
    assert recaps("ERROR! the playbook could not be found") == {}


def test_another_process_finds_the_bed_as_it_is(tmp_path):
    placed = Placed("ap-1", "ap", "c", "n", "v", "10.200.1.0/24", "10.200.1.10", "10.200.1.2", "10.88.0.1")
    state = State("local", "ready", "image:1", False, Links(), (placed,), replace(placed, host="control"))
    state.save(tmp_path)
    assert load_state(tmp_path) == state
