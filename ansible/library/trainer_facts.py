#!/usr/bin/python
"""Read in one go what a host's trainer is and has."""

from __future__ import annotations

DOCUMENTATION = """
module: trainer_facts
short_description: Unit, settings, status, checkpoints, data and images of a host's trainer, in one round trip
description:
  - Returns C(ansible_facts.gradferry_trainer). Reads only.
options:
  name: {description: Name of the host in the inventory., type: str, required: true}
author: [Gradferry]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.trainerhost import state


def main() -> None:
    module = AnsibleModule(argument_spec={"name": {"type": "str", "required": True}}, supports_check_mode=True)
    facts = {"gradferry_trainer": state.read(module.params["name"])}
    module.exit_json(changed=False, ansible_facts=facts)


if __name__ == "__main__":
    main()
