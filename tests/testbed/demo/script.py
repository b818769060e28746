"""The demo from top to bottom. Everything that it shows and writes comes from what the hosts and Ansible wrote down."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from tests.testbed.bed import Bed, remove, up
from tests.testbed.demo.measures import Seen, broken_promises, summary
from tests.testbed.demo.report import publish, show
from tests.testbed.demo.screen import Screen
from tests.testbed.errors import BedError, WaitedTooLong
from tests.testbed.histories import pull_histories, statuses
from tests.testbed.plan import Plan
from tests.testbed.playbook import Ansible, Outcome
from tests.testbed.trainer_build import build_variables
from tests.testbed.workshop import Workshop, open_workshop
from trainer.records.status import Status

EXAMPLE = "examples/digits.yml"
NEW_STEPS = "accum_steps=8"
REDEPLOY_AT_STEP = 10
FIRST_STEPS_S, END_S = 180.0, 600.0
LOOK_EVERY_S = 2.0  # a look costs a process on each host, and they share this machine with us


@dataclass(frozen=True)
class Stage:
    """What every scene needs. `folder`: of this run of the demo, in artifacts/demo/runs/."""

    shop: Workshop
    screen: Screen
    bed: Bed
    folder: Path
    run_name: str

    @property
    def ansible(self) -> Ansible:
        return self.bed.ansible(self.folder)


def demo() -> None:
    """Raises BedError where something went wrong or a promise was not kept; the bed is gone in any case."""
    screen = Screen(Console(), time.monotonic())
    name = f"demo-{os.getpid()}"
    shop = open_workshop(screen.say)
    folder = shop.folders.artifacts / "demo" / "runs" / name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with screen.phase("images of hosts, router and trainer base"):
            build_variables(shop, name)
            for stage in ("wan", "ready"):
                shop.images.tag(stage)
        plan = Plan(name)
        with screen.phase(f"three hosts with a WAN between them: {plan.links.sentence()}"):
            bed = up(shop, plan)
        play(Stage(shop, screen, bed, folder, name))
    finally:
        screen.say("removing the hosts")
        remove(shop, name)


def play(stage: Stage) -> None:
    """The scenes, on a bed that is up."""
    screen, bed = stage.screen, stage.bed
    links = measured_links(bed)
    run = f"run_file={_run_file(stage)}"
    with screen.phase("ansible-playbook site.yml: provision, ship image and data, launch"):
        _play(stage, "site.yml", "-e", run)
    with screen.phase(f"training until step {REDEPLOY_AT_STEP}"):
        _watch(stage, lambda steps: min(steps) >= REDEPLOY_AT_STEP, FIRST_STEPS_S)
    with screen.phase(f"ansible-playbook playbooks/redeploy.yml -e {NEW_STEPS}, while it trains"):
        redeploy = _play(stage, "playbooks/redeploy.yml", "-e", run, "-e", NEW_STEPS)
    with screen.phase(f"ansible-playbook site.yml -e {NEW_STEPS} again: nothing to change"):
        second = _play(stage, "site.yml", "-e", run, "-e", NEW_STEPS, name="site-second")
    with screen.phase("training to the end"):
        _watch(stage, None, END_S)
    histories = pull_histories(bed, stage.folder / "history")
    with screen.phase("ansible-playbook playbooks/teardown.yml: stop, pull, verify, wipe, receipt"):
        receipts = _teardown(stage, run)
    seen = Seen(bed.state.kind, bed.state.seeded, links, redeploy, second, receipts, screen.elapsed_s)
    figures = summary(histories, seen)
    publish(figures, histories, stage.folder, stage.shop.folders.artifacts / "demo")
    show(figures, screen.console, stage.shop.folders.artifacts / "demo")
    if broken := broken_promises(figures, histories, len(bed.hosts)):
        raise BedError(f"the demo ran, but: {'; '.join(broken)}", f"Logs and histories: {stage.folder}")


def measured_links(bed: Bed) -> dict[str, dict[str, float]]:
    """Pair of regions -> round trip (ms, the best of three pings) and the emulator's rate."""
    hosts = list(bed.hosts.values())
    stats = bed.wan.stats()
    found = {}
    for number, a in enumerate(hosts):
        for b in hosts[number + 1 :]:
            said = a.run(["ping", "-q", "-c", "3", "-i", "0.2", b.placed.address])
            rtt = re.search(r"= ([\d.]+)/", said)
            assert rtt is not None  # ping's last line
            rate = stats[f"{a.name}>{b.name}"]["rate_mbit_s"]
            found[f"{a.placed.region}-{b.placed.region}"] = {"rtt_ms": round(float(rtt[1]), 1), "rate_mbit_s": rate}
    return found


def _run_file(stage: Stage) -> Path:
    """The example under a name of its own, so that two demos at once are two clusters."""
    text = (stage.shop.folders.root / EXAMPLE).read_text()
    path = stage.folder / "run.yml"
    path.write_text(re.sub(r"^name: .*$", f"name: {stage.run_name}", text, flags=re.M))
    return path


def _play(stage: Stage, playbook: str, *arguments: str, name: str | None = None) -> Outcome:
    """A playbook to its end, with the hosts shown meanwhile."""
    with stage.ansible.start(playbook, *arguments, name=name) as running:
        outcome = running.finish(lambda: _look(stage, f"ansible: {running.task()}"), LOOK_EVERY_S)
    return outcome.check()


def _look(stage: Stage, note: str = "") -> dict[str, Status | None]:
    """Show the hosts as they are now."""
    now = statuses(stage.bed)
    stage.screen.show(now, note)
    return now


def _watch(stage: Stage, enough: Callable[[list[int]], bool] | None, within_s: float) -> None:
    """Show the hosts until `enough` says so of their steps, or until all have ended."""
    deadline = time.monotonic() + within_s
    while True:
        now = _look(stage)
        known = [status for status in now.values() if status]
        if len(known) == len(now):
            if all(status.state == "ended" for status in known):
                return
            if enough and enough([status.step for status in known]):
                return
        if time.monotonic() > deadline:
            raise WaitedTooLong(f"training: not within {within_s:g} s; the hosts say {now}")
        time.sleep(LOOK_EVERY_S / 2)


def _teardown(stage: Stage, run: str) -> int:
    """How many receipts the playbook wrote."""
    receipts = stage.folder / "receipts"
    places = ("-e", f"receipts_folder={receipts}", "-e", f"pull_folder={stage.folder / 'pulled'}")
    _play(stage, "playbooks/teardown.yml", "-e", run, *places, "-e", f"confirm={stage.run_name}")
    return len(list(receipts.glob("*.json")))
