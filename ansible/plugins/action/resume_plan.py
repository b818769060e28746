"""What of the folder of `-e resume=FOLDER` must go where; run_settings has verified it. Touches no host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from trainer.deploy.pulled import Pulled, read_pulled
from trainer.errors import GradferryError


class ActionModule(ActionBase):
    """Returns `step`, `checkpoint` {source, dest, files, to}, `histories` host -> files; empty where hosts have it."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"folder", "hosts", "state"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = self._task.args
        folder = Path(os.path.abspath(os.path.expanduser(arguments["folder"])))
        try:
            pulled = read_pulled(folder)
        except GradferryError as error:
            return {**result, "failed": True, "msg": str(error)}
        about = (task_vars or {})["hostvars"]
        facts = {str(host): about[host]["ansible_facts"]["gradferry_trainer"] for host in arguments["hosts"]}
        assert pulled.checkpoint is not None  # run_settings has checked the folder
        return {
            **result,
            "changed": False,
            "folder": str(folder),
            "step": pulled.checkpoint["step"],
            "checkpoint": {
                "source": str(folder / "checkpoints" / pulled.checkpoint["name"]),
                "dest": f"{arguments['state']}/checkpoints/{pulled.checkpoint['name']}",
                "files": pulled.checkpoint_files(),
                "to": _receivers(pulled.checkpoint["step"], facts),
            },
            "histories": _histories(pulled, facts),
        }


def _receivers(step: int, facts: Mapping[str, Any]) -> list[str]:
    """The first host, from which the others take it over the mesh; none where a host is as far already."""
    if any(found["step"] >= step for host in facts.values() for found in host["checkpoints"]):
        return []
    return [next(iter(facts))]


def _histories(pulled: Pulled, facts: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Host -> history files that it lacks: its own by name, the first host keeps those of hosts that are no more."""
    there = {name for host in facts.values() for name in host["histories"]}
    wanted: dict[str, dict[str, str]] = {host: {} for host in facts}
    for name, digest in pulled.histories().items():
        owner = name.rpartition("-")[0]
        if name not in there:
            wanted[owner if owner in facts else next(iter(facts))][name] = digest
    return wanted
