"""The figures of the demo, each computed from what the hosts and Ansible wrote down. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tests.testbed.errors import BedError
from tests.testbed.playbook import Outcome
from trainer.records.checkers import EverySampleOnce, OneHistory, StepsWithoutGap
from trainer.records.events import Evaluated, Step
from trainer.records.history import Histories
from trainer.records.lineage import surviving
from trainer.records.redeploy import redeployed
from trainer.records.verdict import Kept, check

ACCURACY = 0.9
LEAST_STEPS = 20


@dataclass(frozen=True)
class Summary:
    """`artifacts/demo/summary.json`. Seconds, counts, shares in [0, 1].

    links: pair of regions -> measured round trip (ms) and the emulator's rate.
    redeploy_s: from the start of the command to the event in the history of the last host.
    """

    hosts: int
    host_image: str
    image_seeded: bool
    links: Mapping[str, Mapping[str, float]]
    optimizer_steps: int
    samples: int
    loss_first: float
    loss_last: float
    accuracy: float
    redeploy_s: float
    redeploy_steps_lost: int
    redeploy_restarts: int
    site_second_run_s: float
    site_second_run_changed: int
    receipts: int
    wall_s: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Seen:
    """What the demo noted on its way. `wall_s`: of the whole of it."""

    host_image: str
    image_seeded: bool
    links: Mapping[str, Mapping[str, float]]
    redeploy: Outcome
    second: Outcome
    receipts: int
    wall_s: float


def summary(histories: Histories, seen: Seen) -> Summary:
    """Raises BedError where the histories do not tell what they must."""
    steps = [executed.window for executed in surviving(histories).chain if isinstance(executed.window, Step)]
    losses = [step.loss for step in steps if step.loss is not None]
    by_time = sorted(histories.entries, key=lambda entry: entry.t)
    accuracies = [entry.event.accuracy for entry in by_time if isinstance(entry.event, Evaluated)]
    change = redeployed(histories, seen.redeploy.started)
    if not losses or change is None or not accuracies or accuracies[-1] is None:
        raise BedError(f"the histories tell of {len(steps)} steps, {len(accuracies)} evaluations, change {change}")
    return Summary(
        hosts=len({entry.host for entry in histories.entries if isinstance(entry.event, Step)}),
        host_image=seen.host_image,
        image_seeded=seen.image_seeded,
        links=seen.links,
        optimizer_steps=len(steps),
        samples=sum(step.stop - step.start for step in steps),
        loss_first=round(losses[0], 4),
        loss_last=round(losses[-1], 4),
        accuracy=round(accuracies[-1], 4),
        redeploy_s=round(change.t - seen.redeploy.started, 2),
        redeploy_steps_lost=change.steps_lost,
        redeploy_restarts=change.restarts,
        site_second_run_s=round(seen.second.wall_s, 1),
        site_second_run_changed=seen.second.changed,
        receipts=seen.receipts,
        wall_s=round(seen.wall_s, 1),
    )


def broken_promises(figures: Summary, histories: Histories, hosts: int) -> list[str]:
    """What the demo promises and did not keep, one sentence each. How long things took is no promise."""
    verdicts = check(histories, EverySampleOnce(), OneHistory(), StepsWithoutGap()).verdicts
    claims = {
        f"{figures.hosts} of {hosts} hosts trained": figures.hosts == hosts,
        f"{figures.optimizer_steps} optimizer steps, expected more than {LEAST_STEPS}": figures.optimizer_steps
        > LEAST_STEPS,
        f"accuracy {figures.accuracy:.3f}, expected at least {ACCURACY}": figures.accuracy >= ACCURACY,
        f"{figures.redeploy_steps_lost} steps lost by the redeploy": figures.redeploy_steps_lost == 0,
        f"{figures.redeploy_restarts} restarts by the redeploy": figures.redeploy_restarts == 0,
        f"the second site.yml changed {figures.site_second_run_changed}": figures.site_second_run_changed == 0,
        f"{figures.receipts} receipts of {hosts} hosts": figures.receipts == hosts,
    }
    broken = [claim for claim, kept in claims.items() if not kept]
    return broken + [f"{name}: {verdict}" for name, verdict in verdicts.items() if not isinstance(verdict, Kept)]
