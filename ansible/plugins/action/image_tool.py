"""Run docker/build.py or docker/push.py on the control node: progress is shown as it comes, the result is JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible.utils.display import Display

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """tool: build or push; arguments: list of words, empty ones left out. Returns the tool's values."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"tool", "arguments", "root", "quiet"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        script = Path(self._task.args["root"]) / "docker" / f"{self._task.args['tool']}.py"
        words = [str(word) for word in self._task.args.get("arguments", []) if word not in ("", None)]
        code, answer, said = _run([sys.executable, str(script), *words])
        if code:
            return {**result, "failed": True, "msg": "\n".join(said[-3:]) or f"{script.name} ended with status {code}"}
        return {**result, "changed": False, **json.loads(answer)}


def _run(argv: list[str]) -> tuple[int, str, list[str]]:
    """Exit status, standard output, lines of standard error, which are shown at once."""
    said: list[str] = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        for line in process.stderr:
            said.append(line.rstrip())
            Display().display(f"  {line.rstrip()[:150]}")
        answer = process.stdout.read()
    return process.returncode, answer.strip().rpartition("\n")[2], said
