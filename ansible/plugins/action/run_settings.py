"""Read run.yml with what was given by `-e`, and the index of its data: the validated values that all that follows uses.

Runs on the control node only. Data that is named by a built-in source and not there yet is packed.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars

from ansible.plugins.action import ActionBase
from trainer.config import Run, load_run
from trainer.deploy.pulled import check_resumable, read_pulled, verify_files
from trainer.errors import DataError, GradferryError
from trainer.launch import host_run, overrides_of

UNKNOWN = "0" * 64  # digest of data that --check does not pack


class ActionModule(ActionBase):
    """Sets ansible_facts.gradferry_run: name, run (as hosts have it), overrides, data {source, dest, digest, files}."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"file", "root", "name_only", "resume"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        root = Path(self._task.args["root"])
        try:
            overrides = overrides_of(json.loads(json.dumps(load_extra_vars(self._loader), default=str)))
            run = load_run(os.path.join(root, self._task.args["file"]), overrides)
            if self._task.args.get("name_only"):  # teardown asks for no data
                return {**result, "changed": False, "ansible_facts": {"gradferry_run": {"name": run.name}}}
            _check_resume(self._task.args.get("resume"), run)
            changed, digest = self._data(run, root)
        except GradferryError as error:
            return {**result, "failed": True, "msg": str(error)}
        on_hosts = host_run(run, digest)
        source = root / run.data.path
        settings = {
            "name": run.name,
            "run": on_hosts.model_dump(mode="json"),
            "overrides": overrides,
            "data": {"source": str(source), "dest": on_hosts.data.path, "digest": digest, "files": _files(source)},
        }
        return {**result, "changed": changed, "ansible_facts": {"gradferry_run": settings}}

    def _data(self, run: Run, root: Path) -> tuple[bool, str]:
        """(packed just now, sha256 of the index)."""
        folder = root / run.data.path
        index = folder / "index.json"
        changed = not index.exists()
        if changed and run.data.pack is None:
            raise DataError(
                f"{folder}: no packed data there", "Make it with `gradferry pack`, or name another data.path"
            )
        if changed and self._task.check_mode:
            return True, UNKNOWN
        if changed:
            from trainer.data.pack import ensure_packed  # h5py: only where something is to be packed

            ensure_packed(run.data.model_copy(update={"path": str(folder)}), Display().display)
        return changed, hashlib.sha256(index.read_bytes()).hexdigest()


def _check_resume(folder: str | None, run: Run) -> None:
    """Raises GradferryError where the folder of `-e resume=FOLDER` is altered, or of another run or model."""
    if not folder:
        return
    place = Path(os.path.abspath(os.path.expanduser(folder)))
    pulled = read_pulled(place)
    verify_files(place, pulled)
    check_resumable(pulled, place, run.model_dump(mode="json"))


def _files(folder: Path) -> dict[str, str]:
    """File -> sha256 of the packed data, by its index, the index included."""
    index = folder / "index.json"
    if not index.exists():
        return {}
    splits = json.loads(index.read_text())["splits"].values()
    return {split["file"]: split["sha256"] for split in splits} | {
        index.name: hashlib.sha256(index.read_bytes()).hexdigest()
    }
