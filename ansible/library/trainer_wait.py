#!/usr/bin/python
"""Wait on a host until its trainer acknowledges settings, or makes steps."""

from __future__ import annotations

DOCUMENTATION = """
module: trainer_wait
short_description: Wait for an acknowledgement or for steps of the trainer
description:
  - Never fails for what did not come; C(reached), C(why) and C(journal) say it: a play judges all hosts together.
options:
  until: {description: What is waited for., choices: [acknowledged, steps], required: true, type: str}
  revision: {description: Revision of the settings., type: str, required: true}
  timeout_s: {description: How long., type: float, default: 60}
author: [Gradferry]
"""

from functools import partial

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.trainerhost import waiting


def waited(until: str, revision: str, timeout_s: float) -> dict:
    """The acknowledgement or the status that was waited for. Raises NotReached."""
    if until == "acknowledged":
        missing = f"no acknowledgement of revision {revision}"
        return {"ack": waiting.until(partial(waiting.acknowledged, revision), timeout_s, missing, check_unit=False)}
    return {"status": waiting.until(partial(waiting.steps, revision), timeout_s, "no step", check_unit=True)}


def main() -> None:
    spec = {
        "until": {"type": "str", "choices": ["acknowledged", "steps"], "required": True},
        "revision": {"type": "str", "required": True},
        "timeout_s": {"type": "float", "default": 60},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    try:
        module.exit_json(changed=False, reached=True, why="", journal=[], **waited(**module.params))
    except waiting.NotReached as not_reached:
        module.exit_json(changed=False, reached=False, why=str(not_reached), journal=not_reached.journal)


if __name__ == "__main__":
    main()
