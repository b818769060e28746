"""One host, from ready to training to handed back: image, unit, settings, data, and what is said when something fails.

The tests are in the order of a host's life and share one host: it trains from the first on.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.bed import Bed, bed
from tests.testbed.plan import THREE
from tests.testbed.playbook import Outcome
from tests.testbed.wait import wait_for

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
RUN = """
name: launchtest
max_steps: 1000000
epochs: 1000000
model: {factory: mlp, args: {hidden: 16}}
data: {path: data/digits, pack: digits}
limits: {cpus: 0.5}
"""


class Cluster:
    """The host, and playbooks typed for it."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.host, self.bed, self.folder = bed.hosts["ap-1"], bed, folder
        self.run_file = folder / "run.yml"
        self.run_file.write_text(RUN)

    def words(self, *extra: str) -> list[str]:
        return [word for value in (f"run_file={self.run_file}", *extra) for word in ("-e", value)]

    def play(self, playbook: str, *extra: str) -> Outcome:
        return self.bed.ansible(self.folder / "logs").play(playbook, *self.words(*extra))

    def status(self) -> dict:
        return json.loads(self.host.read("/var/lib/gradferry/status/ap-1-0.json") or "{}")


@pytest.fixture(scope="module")
def cluster(shop, plan_named, tmp_path_factory) -> Iterator[Cluster]:
    with bed(shop, plan_named("launch", regions=THREE[:1])) as made:
        cluster = Cluster(made, tmp_path_factory.mktemp("launch"))
        cluster.play("site.yml").check()
        yield cluster


def test_the_host_trains_in_a_container_without_rights(cluster):
    assert cluster.status()["step"] > 0
    about = json.loads(cluster.host.run("docker inspect gradferry-trainer"))[0]
    assert about["HostConfig"]["CapDrop"] == ["ALL"]
    assert about["HostConfig"]["ReadonlyRootfs"] is True
    assert about["HostConfig"]["NetworkMode"] == "host"
    assert about["Config"]["User"] == "10001:10001"
    assert not cluster.host.succeeds("docker exec gradferry-trainer touch /opt/mine")
    assert not cluster.host.succeeds("docker exec gradferry-trainer touch /etc/gradferry/run.json")


def test_a_second_launch_changes_nothing_and_sends_nothing(cluster):
    again = cluster.play("playbooks/launch.yml").check()
    assert again.changed == 0
    assert " bytes" not in again.output


def test_the_registry_listens_on_the_loopback_only_and_is_gone_after_the_transfer(cluster, shop):
    assert not [c.name for c in shop.client.containers.list() if c.name.startswith("gradferry-registry-launchtest")]
    reference = cluster.host.run("systemctl show -p Environment gradferry-trainer").split("5077/")[1].strip()
    push = [sys.executable, str(ROOT / "docker" / "push.py"), "--cluster", "bindtest", "--volume", _volume(shop)]
    base = cluster.bed.workshop.images.tag("base")
    try:
        said = subprocess.run([*push, "--base", base, reference], capture_output=True, text=True, check=True)
        assert json.loads(said.stdout)["pushed_bytes"] == 0  # it has all layers from the launch
        ports = shop.client.containers.get("gradferry-registry-bindtest").attrs["NetworkSettings"]["Ports"]
        assert {binding["HostIp"] for bindings in ports.values() for binding in bindings or []} == {"127.0.0.1"}
    finally:
        subprocess.run([*push, "--stop"], check=True, capture_output=True)


def test_a_change_of_our_code_ships_less_than_a_mebibyte(cluster, tmp_path):
    clone = tmp_path / "clone"
    for name in ("trainer", "docker"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, clone / name)
    (clone / "trainer" / "cli.py").write_text((clone / "trainer" / "cli.py").read_text() + "\n# changed\n")
    said = cluster.play("playbooks/launch.yml", f"project_root={clone}", f"templates_dir={ROOT / 'templates'}").check()
    assert "RESTART: all hosts stop with a checkpoint" in said.output
    travelled = re.search(r"ap-1: image \w+, (\d+) bytes", said.output)
    assert travelled and 0 < int(travelled[1]) < 1 << 20


def test_settings_that_a_trainer_does_not_answer_are_taken_back(cluster):
    before = cluster.host.read("/etc/gradferry/run.json")
    cluster.host.run("docker pause gradferry-trainer")
    try:
        refused = cluster.play("playbooks/redeploy.yml", "accum_steps=16", "trainer_service_ack_timeout_s=3")
    finally:
        cluster.host.run("docker unpause gradferry-trainer")
    assert refused.code != 0
    assert "ap-1: no acknowledgement of revision" in refused.output
    assert cluster.host.read("/etc/gradferry/run.json") == before


def test_a_check_run_says_what_would_change_and_changes_nothing(cluster):
    before = cluster.host.read("/etc/gradferry/run.json")
    words = [*cluster.words("accum_steps=16"), "--check", "--diff"]
    said = cluster.bed.ansible(cluster.folder / "logs").play("playbooks/redeploy.yml", *words).check()
    assert "accumulation.accum_steps: 4 -> 16   [live]" in said.output
    assert cluster.host.read("/etc/gradferry/run.json") == before


def test_a_model_that_is_not_there_is_told_from_the_journal_and_a_plain_redeploy_goes_back(cluster):
    step = cluster.status()["step"]
    failed = cluster.play("playbooks/redeploy.yml", "model.factory=nowhere:model")
    assert failed.code != 0
    assert "ap-1: the trainer refused to start. The journal says:" in failed.output
    assert "nowhere" in failed.output.partition("The journal says:")[2]
    back = cluster.play("playbooks/redeploy.yml").check()
    assert "model.factory: nowhere:model -> mlp (was given with -e, run.yml has this)" in back.output
    wait_for(lambda: cluster.status().get("step", 0) > step or None, "steps beyond those before", within_s=120)


def test_a_teardown_that_was_killed_in_its_middle_goes_on_and_leaves_an_empty_host(cluster):
    pulled, receipts = cluster.folder / "pulled", cluster.folder / "receipts"
    words = cluster.words("confirm=launchtest", f"pull_folder={pulled}", f"receipts_folder={receipts}")
    ansible = cluster.bed.ansible(cluster.folder / "logs")
    with ansible.start("playbooks/teardown.yml", *words, name="killed") as running:
        wait_for(lambda: running.reached("Verify everything"), "the middle of it", within_s=180)
        running.process.kill()
        running.process.wait()
    begun = json.loads((receipts / "ap-1.json").read_text())
    assert "pulled" in begun["steps"] and "wiped" not in begun["steps"]

    ansible.play("playbooks/teardown.yml", *words, name="again").check()
    receipt = json.loads((receipts / "ap-1.json").read_text())
    assert list(receipt["steps"]) == ["stopped", "flushed", "pulled", "verified", "wiped", "released"]
    index = json.loads((pulled / "pulled.json").read_text())
    assert index["checkpoint"]["step"] == receipt["steps"]["flushed"]["step"]
    for path in ("/var/lib/gradferry", "/etc/gradferry", "/etc/wireguard/gf0.key", "/etc/gradferry-host"):
        assert not cluster.host.succeeds(["test", "-e", path]), f"{path} is still there"
    assert cluster.host.run("docker images -q --filter label=io.gradferry.content").strip() == ""
    assert "gradferry" not in cluster.host.run("nft list tables")
    assert not cluster.host.succeeds("ip link show gf0")
    assert cluster.host.ssh("echo still reached").strip() == "still reached"


def test_what_was_pulled_is_refused_for_another_run_before_anything_is_sent(cluster):
    other = cluster.folder / "other.yml"
    other.write_text(RUN.replace("launchtest", "another"))
    folder = cluster.folder / "pulled"
    words = ["-e", f"run_file={other}", "-e", f"resume={folder}"]
    refused = cluster.bed.ansible(cluster.folder / "logs").play("site.yml", *words)
    assert refused.code != 0
    assert f"resume = {folder}: holds the run launchtest, run.yml names another" in refused.output
    assert not cluster.host.succeeds(["test", "-e", "/etc/gradferry-host"])  # not even provisioned


def _volume(shop) -> str:
    return f"{shop.owner('shared').prefix}-registry"
