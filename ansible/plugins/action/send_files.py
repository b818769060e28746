"""Send the files of a folder that a host does not have yet, over the connection that Ansible has to it."""

from __future__ import annotations

import os
import time
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    TRANSFERS_FILES = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        start = time.monotonic()
        look = self._execute_module(module_args={**arguments, "phase": "look"}, task_vars=task_vars)
        if look.get("failed") or look["complete"]:
            return {**result, **look}
        size = sum(os.path.getsize(os.path.join(arguments["source"], name)) for name in look["missing"])
        if self._task.check_mode:
            return {**result, "changed": True, "bytes": size}
        folder = self._make_tmp_path()
        try:
            for name in look["missing"]:
                remote = self._connection._shell.join_path(folder, name)
                self._transfer_file(os.path.join(arguments["source"], name), remote)
            done = self._execute_module(
                module_args={**arguments, "phase": "place", "arrived": folder}, task_vars=task_vars
            )
        finally:
            self._remove_tmp_path(folder)
        return {**result, **done, "bytes": size, "seconds": round(time.monotonic() - start, 1)}
