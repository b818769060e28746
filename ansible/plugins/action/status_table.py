"""Print the table of `gradferry status` from the facts of all hosts. On the control node only."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from ansible.utils.display import Display
from rich.console import Console

from ansible.plugins.action import ActionBase
from trainer.status.rows import Row, row_values, rows_of
from trainer.status.table import render

WIDTH = 200


class ActionModule(ActionBase):
    """Returns `rows`, for whoever reads the result and not the screen."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"hosts"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        about = (task_vars or {})["hostvars"]
        rows = [row for host in self._task.args["hosts"] for row in _rows(str(host), about[host])]
        screen = io.StringIO()
        Console(file=screen, width=WIDTH).print(render(rows))
        Display().display(screen.getvalue().rstrip())
        return {**result, "changed": False, "rows": [row_values(row) for row in rows]}


def _rows(host: str, about: Mapping[str, Any]) -> list[Row]:
    facts = (about.get("ansible_facts") or {}).get("gradferry_trainer")
    region = str(about.get("region") or "")
    if not facts:
        return [Row(host, region, problem="no answer over SSH")]
    return rows_of(host, region, [json.dumps(entry) for entry in facts["status"]], float(facts["clock_s"]))
