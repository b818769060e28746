"""Write the index of what a teardown pulled and check every file of it again, from the disk. Touches no host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from trainer.deploy.pulled import INDEX, Pulled, read_pulled, verify_files, write_pulled
from trainer.errors import GradferryError


class ActionModule(ActionBase):
    """files: path below folder -> sha256 as the hosts have it; checkpoint: name, step, digest, or nothing."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"folder", "cluster", "checkpoint", "files"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "changed": False}
        arguments = json.loads(json.dumps(dict(self._task.args)))
        folder = Path(arguments["folder"])
        try:
            pulled = _together(folder, arguments)
            verify_files(folder, pulled)
            if pulled.files:
                write_pulled(folder, pulled)
        except GradferryError as error:
            return {**result, "failed": True, "msg": str(error)}
        checkpoint = pulled.checkpoint or {}
        return {**result, "changed": False, "count": len(pulled.files), "step": checkpoint.get("step")}


def _together(folder: Path, arguments: Mapping[str, Any]) -> Pulled:
    """With what an interrupted teardown had pulled from hosts that are wiped by now."""
    before = read_pulled(folder) if (folder / INDEX).exists() else Pulled(arguments["cluster"], None, {})
    found = arguments.get("checkpoint") or None
    if before.checkpoint and (found is None or found["step"] <= before.checkpoint["step"]):
        found = before.checkpoint
    return Pulled(arguments["cluster"], found, {**before.files, **arguments["files"]})
