#!/usr/bin/python
"""Take files in that the action plugin of the same name has sent: verify, own, and let the folder appear as a whole."""

from __future__ import annotations

DOCUMENTATION = """
module: send_files
short_description: Send a folder once, verified by sha256 on the host
description:
  - A folder whose files have the given sums is left alone. Files that arrived before an interrupt are not sent again.
options:
  source: {description: Folder on the control node (used by the action plugin)., type: path}
  dest: {description: Folder on the host., type: path, required: true}
  files: {description: Name -> sha256., type: dict, required: true}
  owner: {description: Number of the owner and group., type: int, default: 10001}
  whole: {description: "The folder appears as a whole; if not, files go into it one by one.", type: bool, default: true}
  phase: {description: Used by the action plugin., choices: [look, place], default: look, type: str}
  arrived: {description: "Used by the action plugin: folder with what was sent.", type: path}
author: [Gradferry]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.trainerhost import intake


def main() -> None:
    spec = {
        "source": {"type": "path"},
        "dest": {"type": "path", "required": True},
        "files": {"type": "dict", "required": True},
        "owner": {"type": "int", "default": 10001},
        "whole": {"type": "bool", "default": True},
        "phase": {"type": "str", "choices": ["look", "place"], "default": "look"},
        "arrived": {"type": "path"},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    folder = intake.Intake(**{name: module.params[name] for name in ("dest", "files", "owner", "whole")})
    if module.params["phase"] == "look":
        missing = folder.missing()
        module.exit_json(changed=False, missing=missing, complete=not missing and folder.is_complete())
    try:
        folder.place(module.params["arrived"])
    except intake.Damaged as damaged:
        module.fail_json(msg=str(damaged))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
