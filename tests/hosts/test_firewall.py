"""A stranger finds SSH and nothing else, over IPv4, IPv6 and around Docker's rules; the owner is never locked out."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.docker
IMAGE = """
set -e
libraries=$(ldd /usr/bin/python3 | grep -o '/[^ ]*')
tar -chf - /usr/bin/python3 /usr/lib/python3.11 $libraries 2>/dev/null | docker import - tiny >/dev/null
docker run -d --name published -p 8080:8000 tiny /usr/bin/python3 -m http.server 8000 >/dev/null
"""


def answers(address: str, port: int, within_s: float = 1.5) -> bool:
    """A closed port that refuses counts as an answer: a dropped one says nothing."""
    with socket.socket() as probe:
        probe.settimeout(within_s)
        try:
            return probe.connect_ex((address, port)) in (0, 111)
        except TimeoutError:
            return False


def open_ports(address: str, ports) -> list[int]:
    with ThreadPoolExecutor(128) as pool:
        return [
            port for port, open_ in zip(ports, pool.map(lambda p: answers(address, p), ports), strict=True) if open_
        ]


@pytest.fixture
def busy_host(cluster):
    """ap-1 with a service on every address and a container with a published port."""
    host = cluster.hosts["ap-1"]
    host.run("systemd-run --unit=test-web --collect python3 -m http.server 8000 --bind ::")
    host.wait_for(lambda: host.succeeds("ss -tln | grep -q :8000"), "listens", within_s=20)
    host.run(IMAGE)
    host.wait_for(lambda: host.succeeds("ss -tln | grep -q :8080"), "publishes", within_s=20)
    yield host
    host.run("systemctl stop test-web; docker rm -f published; docker rmi tiny")


def test_a_stranger_finds_ssh_and_nothing_else(busy_host):
    listening = {int(line.split()[3].rpartition(":")[2]) for line in busy_host.run("ss -tlnH").splitlines()}
    assert {22, 8000, 8080} <= listening
    ports = sorted(listening | set(range(1, 257)))
    assert open_ports(busy_host.placed.address, ports) == [22]


def test_without_our_table_the_same_scan_finds_them(busy_host, provision):
    busy_host.run("systemctl stop gradferry-firewall")
    try:
        assert set(open_ports(busy_host.placed.address, [22, 8000, 8080])) == {22, 8000, 8080}
    finally:
        busy_host.run("systemctl start gradferry-firewall")


def test_hosts_of_the_mesh_reach_what_strangers_do_not(cluster, busy_host):
    mesh = busy_host.run("ip -o -4 addr show gf0 | grep -o '10.88.0.[0-9]*/' | tr -d /").strip()
    ask = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)"
    for port in (8000, 8080):
        cluster.hosts["eu-1"].run(["python3", "-c", ask, mesh, str(port)])


def test_ipv6_is_closed_as_ipv4_is(busy_host):
    ask = "import socket; print([p for p in (22, 8000) if not connect(p)])"
    connect = "connect = lambda p: (lambda s: (s.settimeout(2), s.connect_ex(('fd77::1', p)))[1])(socket.socket(10))"
    busy_host.run("ip netns add stranger; ip link add out type veth peer name in netns stranger")
    try:
        busy_host.run(
            "sysctl -qw net.ipv6.conf.out.disable_ipv6=0; ip addr add fd77::1/64 dev out nodad; ip link set out up"
        )
        inside = "ip netns exec stranger"
        busy_host.run(f"{inside} ip addr add fd77::2/64 dev in nodad; {inside} ip link set in up")
        busy_host.wait_for(lambda: busy_host.succeeds(f"{inside} ping -6 -c 1 -W 2 fd77::1"), "IPv6", within_s=20)
        code = f"import socket\n{connect}\n{ask}"
        seen = busy_host.run(["ip", "netns", "exec", "stranger", "python3", "-c", code])
        assert seen.strip() == "[22]"
    finally:
        busy_host.run("ip link del out; ip netns del stranger")


def test_tables_of_others_stay_and_ours_comes_back_after_their_flush(cluster, provision):
    host = cluster.hosts["eu-1"]
    host.run("nft add table inet others; nft add chain inet others c; nft add rule inet others c counter")
    before = host.run("nft list table inet others; iptables-save -t nat | grep -c DOCKER")
    host.run("nft delete table inet gradferry")
    provision("--tags", "firewall").check()
    assert host.run("nft list table inet others; iptables-save -t nat | grep -c DOCKER") == before
    host.run("nft delete table inet others")


def test_a_table_that_locks_us_out_undoes_itself(cluster, provision):
    host = cluster.hosts["eu-1"]
    closed = '{"firewall_ssh_ports": [2222], "firewall_undo_after_s": 8}'
    outcome = provision("--tags", "firewall", "--limit", "eu-1", "-e", closed)
    assert outcome.code != 0, "port 22 was closed, so the new login cannot have worked"
    host.wait_for(lambda: answers(host.placed.address, 22), "SSH is open again", within_s=60)
    provision().check()
    assert host.succeeds("nft list table inet gradferry | grep -q 'tcp dport 22 accept'")
