"""A cluster as a user has it: hosts, playbooks typed at the control node, and what the hosts have written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.testbed.bed import Bed
from tests.testbed.histories import pull_histories, statuses
from tests.testbed.playbook import Outcome
from tests.testbed.wait import wait_for
from trainer.records.checkers import EverySampleOnce, OneHistory, StepsWithoutGap
from trainer.records.history import Histories
from trainer.records.status import Status
from trainer.records.verdict import check

T = TypeVar("T")
RUN_FILE = Path(__file__).parent / "run.digits.yml"
SAME_STEP_S = 180.0
STATUS_S = 30.0


@dataclass(frozen=True)
class Cluster:
    """`folder`: where logs and pulled histories go. Histories of earlier hosts in it count as well."""

    bed: Bed
    folder: Path

    def play(self, playbook: str, *extra: str, name: str | None = None) -> Outcome:
        """Run a playbook with `-e` for each of `extra`; its outcome, good or bad."""
        pairs = [word for value in (f"run_file={RUN_FILE}", *extra) for word in ("-e", value)]
        return self.bed.ansible(self.folder / "logs").play(playbook, *pairs, name=name)

    def site(self, *extra: str, name: str = "site") -> Outcome:
        return self.play("site.yml", *extra, name=name).check()

    def histories(self) -> Histories:
        return pull_histories(self.bed, self.folder / "histories")

    def check_promises(self) -> None:
        """Every sample of each epoch counts once, all replicas tell the same, no step is missing."""
        check(self.histories(), EverySampleOnce(), OneHistory(), StepsWithoutGap()).raise_unless_kept()

    def statuses(self) -> dict[str, Status]:
        """Of every host; waits a little for one that is just starting or too busy to answer."""
        return wait_for(self._statuses, "a status from every host", within_s=STATUS_S)

    def _statuses(self) -> dict[str, Status]:
        found = statuses(self.bed)
        silent = [host for host, status in found.items() if status is None]
        if silent:
            raise LookupError(f"no status yet from {', '.join(silent)}")
        return {host: status for host, status in found.items() if status is not None}

    def step(self) -> int:
        """The optimizer step that every host has reached."""
        return min(status.step for status in self.statuses().values())

    def wait_until_it_trains(self, *, beyond: int, within_s: float = SAME_STEP_S) -> int:
        """Wait until every host has made more steps than `beyond`; the step that all have reached."""
        return self.wait_for(lambda: self.step() if self.step() > beyond else None, f"a step beyond {beyond}", within_s)

    def wait_for(self, condition: Callable[[], T | None], what: str, within_s: float = SAME_STEP_S) -> T:
        return wait_for(condition, what, within_s=within_s)
