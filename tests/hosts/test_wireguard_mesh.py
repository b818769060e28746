"""The mesh: every pair answers, private keys stay, peers change while connections live."""

import json
import re
from itertools import permutations

import pytest

from tests.testbed.plan import Links
from tests.testbed.replace import replace

pytestmark = pytest.mark.docker
LISTEN = """
import socket, sys
server = socket.create_server((sys.argv[1], 7001))
connection, _ = server.accept()
while data := connection.recv(64):
    connection.sendall(data)
"""
# Counts over one TCP connection for as long as it lives; never connects again.
COUNT = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 7001), timeout=30)
for number in range(100000):
    connection.sendall(b"x")
    assert connection.recv(1)
    open("/run/counted", "w").write(str(number))
    time.sleep(0.05)
"""


def address(host):
    return re.search(r"inet (10\.88\.0\.\d+)/24", host.run("ip addr show gf0")).group(1)


def counted(host):
    return int(host.read("/run/counted") or 0)


def test_every_pair_answers_over_the_mesh_at_the_distance_of_its_regions(cluster):
    for one, other in permutations(cluster.hosts.values(), 2):
        out = one.run(f"ping -c 2 -i 0.2 -W 3 {address(other)}")
        rtt_ms = float(re.search(r"= ([\d.]+)/", out).group(1))
        wanted = Links().one_way_ms(one.placed.region, other.placed.region) * 2
        assert wanted * 0.9 < rtt_ms, "through the emulated WAN, not around it"


def test_private_keys_are_made_on_the_hosts_and_stay_there(cluster, tmp_path):
    keys = {host.run("cat /etc/wireguard/gf0.key").strip() for host in cluster.hosts.values()}
    assert len(keys) == 3
    again = cluster.ansible(tmp_path).play("playbooks/provision.yml", "-vvv", "--tags", "wireguard_mesh").check()
    for name, host in cluster.hosts.items():
        key = host.run("cat /etc/wireguard/gf0.key").strip()
        assert host.run("stat -c '%a %U' /etc/wireguard/gf0.key").strip() == "600 root"
        assert "PrivateKey" not in host.run("cat /etc/wireguard/gf0.conf")
        assert key not in again.output
        others = [other for other in cluster.hosts if other != name]
        assert not any(cluster.hosts[o].succeeds(f"grep -rqs -- '{key}' /etc /root /var/lib /run") for o in others)


def test_a_full_packet_passes_the_mesh_and_its_mtu_is_the_described_one(cluster):
    ap, eu = cluster.hosts["ap-1"], cluster.hosts["eu-1"]
    mtu = json.loads(ap.run("ip -j link show gf0"))[0]["mtu"]
    assert ap.succeeds(f"ping -c 1 -W 3 -M do -s {mtu - 28} {address(eu)}")
    assert not ap.succeeds(f"ping -c 1 -W 3 -M do -s {mtu - 27} {address(eu)}")


def test_a_reload_of_the_unit_keeps_the_private_key(cluster):
    ap, eu = cluster.hosts["ap-1"], cluster.hosts["eu-1"]
    ap.run("systemctl reload wg-quick@gf0")
    assert ap.run("wg show gf0 public-key") == ap.run("cat /etc/wireguard/gf0.pub")
    assert ap.succeeds(f"ping -c 1 -W 5 {address(eu)}")


def test_a_narrow_path_is_measured_and_the_mesh_follows_it_both_ways(cluster, provision):
    ap = cluster.hosts["ap-1"]
    device = re.search(r"dev (\S+)", ap.run(f"ip route get {cluster.hosts['eu-1'].placed.address}")).group(1)
    ap.run(f"ip link set {device} mtu 1400")
    try:
        provision("--tags", "wireguard_mesh").check()
        narrow = json.loads(ap.run("ip -j link show gf0"))[0]["mtu"]
        assert 1400 - 80 - 8 < narrow <= 1400 - 80
        assert f"MTU = {narrow}" in ap.run("cat /etc/wireguard/gf0.conf")
        assert provision("--tags", "wireguard_mesh").check().changed == 0
    finally:
        ap.run(f"ip link set {device} mtu 1500")
    provision().check()
    assert json.loads(ap.run("ip -j link show gf0"))[0]["mtu"] == 1420


def test_a_host_that_does_not_answer_is_named_with_the_cure(cluster, provision):
    na = cluster.hosts["na-1"]
    na.run("nft insert rule inet gradferry input udp dport 51820 drop")
    na.run("nft insert rule inet gradferry input ct state established udp sport 51820 drop")
    na.run("systemctl restart wg-quick@gf0; conntrack -F 2>/dev/null || true")
    try:
        outcome = provision("-e", "wireguard_mesh_answer_within_s=6")
        assert outcome.code == 2
        assert "no answer over the mesh within 6 s from na-1 (" in outcome.output
        assert "provider's firewall" in outcome.output
    finally:
        na.run("systemctl reload gradferry-firewall")
    provision().check()


def test_a_replaced_host_joins_alone_while_connections_of_the_others_live(cluster, provision):
    ap, eu = cluster.hosts["ap-1"], cluster.hosts["eu-1"]
    for host, code, name in ((eu, LISTEN, "listen"), (ap, COUNT, "count")):
        host.run(["sh", "-c", f"cat >/run/{name}.py <<'EOF'\n{code}\nEOF"])
        host.run(f"systemd-run --unit=test-{name} --collect python3 /run/{name}.py {address(eu)}")
        if name == "listen":
            host.wait_for(lambda: eu.succeeds("ss -tln | grep -q :7001"), "listens", within_s=20)
    ap.wait_for(lambda: counted(ap) > 3, "counts", within_s=20)
    links = {host.name: host.run("ip -o link show gf0 | cut -d: -f1") for host in (ap, eu)}
    old_key = cluster.hosts["na-1"].run("cat /etc/wireguard/gf0.pub").strip()

    replace(cluster, "na-1", disk="lost")
    refused = provision("--limit", "na-1")
    assert refused.code == 2 and "na-1: its SSH key is not the one that we know" in refused.output
    assert "replaced=na-1" in refused.output
    provision("--limit", "na-1", "-e", "replaced=na-1").check()

    new_key = cluster.hosts["na-1"].run("cat /etc/wireguard/gf0.pub").strip()
    for host in (ap, eu):
        peers = host.run("wg show gf0 peers")
        assert new_key in peers and old_key not in peers
        assert host.run("ip -o link show gf0 | cut -d: -f1") == links[host.name], "the interface was not made anew"
    now = counted(ap)
    ap.wait_for(lambda: counted(ap) > now + 3, "still counts over the same connection", within_s=20)
    for host, name in ((ap, "count"), (eu, "listen")):
        host.run(f"systemctl stop test-{name}")
    assert provision().check().changed == 0
