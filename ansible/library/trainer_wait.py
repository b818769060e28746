#!/usr/bin/python
"""Wait on a host until its trainer acknowledges settings, or makes steps."""

from __future__ import annotations

DOCUMENTATION = """
module: trainer_wait
short_description: Wait for an acknowledgement or for steps of the trainer
description:
  - Never fails for what did not come; C(reached), C(why) and C(journal) say it, so that a play can judge all hosts together.
options:
  until: {description: What is waited for., choices: [acknowledged, steps], required: true, type: str}
  revision: {description: Revision of the settings., type: str, required: true}
  since_s: {description: "Steps count when they were made after this time of the host's clock, unix seconds.", type: float, default: 0}
  timeout_s: {description: How long., type: float, default: 60}
author: [Gradferry]
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.trainerhost import waiting


def waited(params: dict) -> dict:
    revision = params["revision"]
    if params["until"] == "acknowledged":
        missing = f"no acknowledgement of revision {revision}"
        return {
            "ack": waiting.until(lambda: waiting.acknowledged(revision), params["timeout_s"], missing, check_unit=False)
        }
    found = waiting.until(
        lambda: waiting.steps(params["since_s"], revision), params["timeout_s"], "no step", check_unit=True
    )
    return {"status": found}


def main() -> None:
    spec = {
        "until": {"type": "str", "choices": ["acknowledged", "steps"], "required": True},
        "revision": {"type": "str", "required": True},
        "since_s": {"type": "float", "default": 0},
        "timeout_s": {"type": "float", "default": 60},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    try:
        module.exit_json(changed=False, reached=True, why="", journal=[], **waited(module.params))
    except waiting.NotReached as not_reached:
        module.exit_json(changed=False, reached=False, why=str(not_reached), journal=not_reached.journal)


if __name__ == "__main__":
    main()
