"""Bring files of a host to the control node over Ansible's own connection; those that are here already stay."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from trainer.deploy.pulled import sha256_of


class ActionModule(ActionBase):
    """Returns `files`: path below dest -> sha256, `bytes` that travelled."""

    TRANSFERS_FILES = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        start = time.monotonic()
        arguments = dict(self._task.args)
        dest = Path(arguments["dest"])
        found = self._execute_module(module_args={**arguments, "phase": "list"}, task_vars=task_vars)
        if found.get("failed"):
            return {**result, **found}
        missing = [entry for entry in found["files"] if sha256_of(dest / entry["below"]) != entry["sha256"]]
        if missing and not self._task.check_mode:
            self._fetch(missing, dest, arguments, task_vars)
        damaged = [e["below"] for e in missing if sha256_of(dest / e["below"]) != e["sha256"]]
        if damaged and not self._task.check_mode:
            return {
                **result,
                "failed": True,
                "msg": f"{damaged[0]}: its sha256 here is not that on the host. Run again.",
            }
        return {
            **result,
            "changed": bool(missing),
            "files": {entry["below"]: entry["sha256"] for entry in found["files"]},
            "bytes": sum(entry["bytes"] for entry in missing),
            "seconds": round(time.monotonic() - start, 1),
        }

    def _fetch(self, entries: list[dict[str, Any]], dest: Path, arguments: dict[str, Any], task_vars: Any) -> None:
        wanted = [entry["path"] for entry in entries]
        laid = self._execute_module(module_args={**arguments, "phase": "offer", "wanted": wanted}, task_vars=task_vars)
        try:
            for entry in entries:
                target = dest / entry["below"]
                target.parent.mkdir(parents=True, exist_ok=True)
                partial = target.with_name(target.name + ".partial")
                self._connection.fetch_file(laid["places"][entry["path"]], str(partial))
                os.replace(partial, target)
        finally:
            if laid.get("folder"):
                withdraw = {**arguments, "phase": "withdraw", "folder": laid["folder"]}
                self._execute_module(module_args=withdraw, task_vars=task_vars)
