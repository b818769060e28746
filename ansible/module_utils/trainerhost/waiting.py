"""Wait on a host for what its trainer writes: an acknowledgement, or steps. Conditions with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible.module_utils.hostcard.command import output_of
from ansible.module_utils.trainerhost import state

POLL_S = 0.1  # the files are replaced by rename on the same host; there is nothing to be woken by
UNIT_EVERY_S = 2.0
EXIT_USER = 2
RUNTIME_FAILS = (125, 126, 127)  # docker run could not start the container at all
RESTARTS_MAX = 3
FINISHED = ("finished", "stopped early")  # reasons of `ended` when a run is complete; also in trainer/deploy/rollout.py


class NotReached(Exception):
    """What was waited for did not come; the message says why, `journal` what the unit said last."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.journal = journal()


def journal(lines: int = 15) -> list[str]:
    shown = output_of(["journalctl", "--unit", state.UNIT, "--lines", str(lines), "--no-pager", "--output", "cat"])
    return [line[:400] for line in (shown or "").splitlines() if line.strip()]


def until(look: Callable[[], Any], timeout_s: float, missing: str, *, check_unit: bool) -> Any:
    """What `look` returns once it is not None. Raises NotReached at the deadline, or when the unit gave up."""
    deadline = time.monotonic() + timeout_s
    asked = time.monotonic()
    while True:
        found = look()
        if found is not None:
            return found
        now = time.monotonic()
        if check_unit and now - asked > UNIT_EVERY_S:
            asked = now
            refuse_if_given_up()
        if now > deadline:
            raise NotReached(f"{missing} within {timeout_s:g} s")
        time.sleep(POLL_S)


def refuse_if_given_up() -> None:
    """Raises NotReached where waiting longer is of no use."""
    unit = state.unit()
    if unit["active"] == "failed" and unit["exit"] == EXIT_USER:
        raise NotReached("the trainer refused to start")
    if unit["exit"] in RUNTIME_FAILS and unit["restarts"] >= RESTARTS_MAX:
        raise NotReached("the container cannot be started")
    if unit["active"] in ("failed", "inactive") and unit["load"] != "loaded":
        raise NotReached("the unit is not there")


def started_s() -> float:
    """When the unit's process was started last, in seconds of the host's clock; 0 where it never was."""
    shown = output_of(["systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "--value", state.UNIT])
    monotonic_s = int((shown or "0").strip() or 0) / 1e6
    return time.time() - (time.clock_gettime(time.CLOCK_MONOTONIC) - monotonic_s) if monotonic_s else 0.0


def acknowledged(revision: str) -> dict[str, Any] | None:
    """acks/<revision>.json once the trainer has written it."""
    ack = state.parsed(f"{state.STATE}/acks/{revision}.json")
    return ack if isinstance(ack, dict) and "accepted" in ack else None


def steps(revision: str) -> dict[str, Any] | None:
    """Status of this host's first rank, once every rank has made a step (or ended) since the unit's last start."""
    ranks, since_s = state.status(), started_s()
    ready = [rank for rank in ranks if _steps(rank, since_s, revision)]
    return ranks[0] if ranks and len(ready) == len(ranks) else None


def _steps(rank: dict[str, Any], since_s: float, revision: str) -> bool:
    if float(rank.get("t", 0)) < since_s:
        return False
    if rank.get("state") == "ended":
        return finished(rank)
    return rank.get("state") == "training" and int(rank.get("step", 0)) > 0 and rank.get("revision") == revision


def finished(rank: dict[str, Any]) -> bool:
    event = state.last_event(str(rank.get("host", "")))
    return event.get("event") == "ended" and event.get("reason") in FINISHED
