#!/usr/bin/python
"""List files of a host with their sums, and lay them out for the login user. See the action plugin of this name."""

from __future__ import annotations

DOCUMENTATION = """
module: bring_files
short_description: Bring files of a host to the control node, verified by sha256
options:
  sources: {description: "Path on the host -> path below dest; folders whole.", type: dict, required: true}
  dest: {description: Folder on the control node (used by the action plugin)., type: path}
  phase: {description: Used by the action plugin., choices: [list, offer, withdraw], default: list, type: str}
  wanted: {description: "Used by the action plugin: absolute paths to lay out.", type: list, elements: str, default: []}
  folder: {description: "Used by the action plugin: where they were laid out.", type: path}
author: [Gradferry]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.trainerhost import offer


def main() -> None:
    spec = {
        "sources": {"type": "dict", "required": True},
        "dest": {"type": "path"},
        "phase": {"type": "str", "choices": ["list", "offer", "withdraw"], "default": "list"},
        "wanted": {"type": "list", "elements": "str", "default": []},
        "folder": {"type": "path"},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    phase = module.params["phase"]
    if phase == "list":
        module.exit_json(changed=False, files=offer.listed(module.params["sources"]))
    if phase == "offer":
        module.exit_json(changed=False, **offer.laid_out(module.params["wanted"]))
    offer.withdraw(module.params["folder"])
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
