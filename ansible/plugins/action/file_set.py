"""Render a set of files and write those that differ, in one round trip; in none where the facts show all of them.

`host_facts` fingerprints the files that we manage. A set that agrees with these fingerprints needs no connection;
that is what makes a second `site.yml` cheap, most of all over an ocean. Files outside `host_facts_files` take the trip.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.template import trust_as_template

from ansible.plugins.action import ActionBase

FIELDS = {"dest", "state", "content", "template", "mode", "owner", "group", "validate"}


def _load_wanted() -> ModuleType:
    """The comparison that runs on the hosts too; Ansible imports module_utils there, but not on the control node."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "..", "..", "module_utils", "hostcard", "wanted.py")
    spec = importlib.util.spec_from_file_location("gradferry_wanted", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wanted = _load_wanted()


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _VALID_ARGS = frozenset({"files"})

    def run(self, tmp: Any = None, task_vars: Mapping[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        sought = [self._rendered(entry, variables) for entry in self._task.args.get("files") or []]
        facts = self._facts(variables)
        if facts and not any(self._must_ask(want, facts) for want in sought):
            return {**result, "changed": False, "changed_files": []}
        done = self._execute_module(module_name="file_set", module_args={"files": sought}, task_vars=task_vars)
        now = done.pop("now", None)
        if facts and now and done.get("changed") and not (self._task.check_mode or self._task.delegate_to):
            done["ansible_facts"] = {"gradferry": _with_files(facts, now)}
        return {**result, **done}

    def _facts(self, variables: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Facts of the host that is written to, which is another one when the task is delegated."""
        host = self._task.delegate_to
        about = variables["hostvars"][host] if host else variables
        return (about.get("ansible_facts") or {}).get("gradferry")

    @staticmethod
    def _must_ask(want: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
        return not wanted.is_watched(want["dest"], facts["watched"]) or wanted.differs(
            want, facts["files"].get(want["dest"])
        )

    def _rendered(self, entry: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
        unknown = set(entry) - FIELDS
        if unknown or "dest" not in entry:
            raise AnsibleActionFail(f"file_set: {entry.get('dest', 'a file without dest')}: unknown {sorted(unknown)}")
        want = {"state": "file", **wanted.DEFAULTS, **{key: value for key, value in entry.items() if value is not None}}
        template = want.pop("template", None)
        if template is not None:
            want["content"] = self._render(template, variables)
        if want["state"] == "file" and "content" not in want:
            raise AnsibleActionFail(f"file_set: {want['dest']}: `content` or `template` is missing")
        return want

    def _render(self, template: str, variables: Mapping[str, Any]) -> str:
        """Text of a template below `templates_dir`; a variable that is not defined is an error."""
        root = self._templar.template(variables["templates_dir"])
        path = os.path.join(root, template)
        text = trust_as_template(self._loader.get_text_file_contents(path))
        templar = self._templar.copy_with_new_env(searchpath=[root], available_variables=dict(variables))
        overrides = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
        return str(templar.template(text, escape_backslashes=False, overrides=overrides))


def _with_files(facts: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    files = {**facts["files"], **now}
    return {**facts, "files": {path: seen for path, seen in files.items() if seen is not None}}
