#!/usr/bin/python
"""Make the WireGuard key of this host where it is missing. Only the public half is returned."""

from __future__ import annotations

import os
import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: mesh_key
short_description: Make a WireGuard key on the host; the private half never leaves it
options:
  path: {description: "File of the private key; C(.pub) stands beside it.", type: path, required: true}
author: [Gradferry]
"""


def wg(*arguments: str, given: str = "") -> str:
    done = subprocess.run(["wg", *arguments], input=given, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write(path: str, text: str, mode: int) -> None:
    """Create or replace `path`; the file has its mode before it has its content."""
    beside = f"{path}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        os.fchmod(stream.fileno(), mode)
        stream.write(text + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(beside, path)


def main() -> None:
    module = AnsibleModule({"path": {"type": "path", "required": True}}, supports_check_mode=True)
    path = module.params["path"]
    public_path = os.path.splitext(path)[0] + ".pub"
    made = not os.path.exists(path)
    if module.check_mode:
        module.exit_json(changed=made or not os.path.exists(public_path), public_key=None)
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        if made:
            write(path, wg("genkey"), 0o600)
        with open(path, encoding="ascii") as stream:
            public = wg("pubkey", given=stream.read())
        write(public_path, public, 0o644)
    except (OSError, subprocess.CalledProcessError) as problem:
        module.fail_json(msg=f"{path}: no key could be made or read: {problem}")
    module.exit_json(changed=True, public_key=public)


if __name__ == "__main__":
    main()
