#!/usr/bin/python
"""Pull an image into a host's engine. The action plugin of the same name opens the way to the registry."""

from __future__ import annotations

DOCUMENTATION = """
module: trainer_image_pull
short_description: Pull the trainer image and say which layers had to travel
description:
  - Of our own older images the engine keeps the one in use and the one before; others are removed after a pull.
options:
  reference: {description: "REGISTRY/NAME:TAG", type: str, required: true}
  content: {description: Content label that the image must have; empty for any., type: str, default: ""}
  keep: {description: References that stay., type: list, elements: str, default: []}
  registry_port: {description: "Used by the action plugin: port on the host's loopback.", type: int}
  control_port: {description: "Used by the action plugin: port of the registry on the control node.", type: int}
  layers: {description: "Used by the action plugin: digest -> bytes.", type: dict, default: {}}
author: [Gradferry]
"""

import time

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.trainerhost import puller


def main() -> None:
    spec = {
        "reference": {"type": "str", "required": True},
        "content": {"type": "str", "default": ""},
        "keep": {"type": "list", "elements": "str", "default": []},
        "registry_port": {"type": "int"},
        "control_port": {"type": "int"},
        "layers": {"type": "dict", "default": {}},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    wanted = module.params["reference"]
    if module.check_mode:
        module.exit_json(changed=True, pulled=[], seconds=0.0)
    start = time.monotonic()
    try:
        pulled = puller.pull(wanted)
        puller.check_label(wanted, module.params["content"])
        puller.remove_older([wanted, *module.params["keep"]])
    except puller.PullFailed as failed:
        module.fail_json(msg=str(failed))
    module.exit_json(changed=True, pulled=pulled, seconds=round(time.monotonic() - start, 1))


if __name__ == "__main__":
    main()
