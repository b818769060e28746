#!/usr/bin/python
"""Remove what we put on a host: units, files, images. What others put there stays."""

from __future__ import annotations

DOCUMENTATION = """
module: host_wipe
short_description: Stop and disable units, then remove files and images, in one round trip
description:
  - Units are stopped in the given order, before any file goes. Units and files that are not there are no change.
options:
  units: {description: Units in the order in which they stop., type: list, elements: str, default: []}
  paths: {description: Glob patterns of files and folders., type: list, elements: str, default: []}
  image_label: {description: Images with this label are removed., type: str, default: ""}
author: [Gradferry]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.trainerhost import wiping


def main() -> None:
    spec = {
        "units": {"type": "list", "elements": "str", "default": []},
        "paths": {"type": "list", "elements": "str", "default": []},
        "image_label": {"type": "str", "default": ""},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    units = wiping.present(module.params["units"])
    paths = wiping.matching(module.params["paths"])
    images = wiping.images(module.params["image_label"])
    removed = [*units, *paths, *images]
    if removed and not module.check_mode:
        try:
            wiping.wipe(units, paths, images)
        except wiping.Left as left:
            module.fail_json(msg=str(left), removed=removed)
    module.exit_json(changed=bool(removed), removed=removed)


if __name__ == "__main__":
    main()
