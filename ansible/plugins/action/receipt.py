"""Note on a host's receipt that a step is done, with its time and what was seen. On the control node only."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from trainer.deploy.receipt import STEPS, read_receipt, write_receipt
from trainer.errors import GradferryError


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"receipts", "host", "step", "seen"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = self._task.args
        path = Path(arguments["receipts"]) / f"{arguments['host']}.json"
        step = arguments["step"]
        assert step in STEPS
        if self._task.check_mode:
            return {**result, "changed": False}
        try:
            receipt = read_receipt(path)
            assert receipt is not None  # teardown_plan has opened it
            seen = json.loads(json.dumps(arguments.get("seen") or {}))
            write_receipt(path, receipt.noted(step, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), seen))
        except GradferryError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False}
