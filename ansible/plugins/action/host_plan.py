"""Say what provisioning is about to change on a host: the roles' own steps, and the files that are not as described.

Nothing is sent: steps come from facts, files are compared with the fingerprints among the facts. Where no host has a
plan, the play that would bring them about is left out as a whole; a test damages each thing and sees it in the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.loader import action_loader

FileSet = action_loader.get("file_set", class_only=True)


class ActionModule(FileSet):  # type: ignore[misc, valid-type]
    _VALID_ARGS = frozenset({"files", "steps"})

    def run(self, tmp: Any = None, task_vars: Mapping[str, Any] | None = None) -> dict[str, Any]:
        variables = task_vars or {}
        facts = self._facts(variables)
        files = [self._rendered(entry, variables) for entry in self._task.args["files"]]
        plan = [*self._task.args["steps"], *(self._described(want) for want in files if self._must_ask(want, facts))]
        return {"changed": False, "plan": plan, **({"msg": plan, "_ansible_verbose_always": True} if plan else {})}

    @staticmethod
    def _described(want: Mapping[str, Any]) -> str:
        return f"remove {want['dest']}" if want["state"] == "absent" else f"write {want['dest']}"
