"""How long site.yml takes on a bed that is provisioned: nothing changed, one setting changed, and from far away."""

from __future__ import annotations

from pathlib import Path

from tests.testbed.bed import Bed
from tests.testbed.playbook import Outcome


def timings(bed: Bed, run_file: Path, log_folder: Path, setting: str) -> dict[str, dict[str, float]]:
    """Name of the case -> wall seconds and changed tasks. `setting` ("accum_steps=6") is new to the running trainers.

    Raises BedError where a playbook fails. The last case needs root (vantage point behind the WAN).
    """
    here, afar = bed.ansible(log_folder), bed.ansible_from_afar(log_folder)
    run = ("-e", f"run_file={run_file}")
    found = {
        "site_as_it_is": here.play("site.yml", *run, name="timing-0"),
        "site_second_run": here.play("site.yml", *run, name="timing-1"),
        "site_one_changed_setting": here.play("site.yml", *run, "-e", setting, name="timing-2"),
        "site_second_run_from_afar": afar.play("site.yml", *run, "-e", setting, name="timing-3"),
    }
    return {name: _figures(outcome.check()) for name, outcome in found.items()}


def _figures(outcome: Outcome) -> dict[str, float]:
    return {"wall_s": round(outcome.wall_s, 1), "changed": outcome.changed}
