#!/usr/bin/python
"""Bring a set of files, folders and absences about in one round trip. Called by the action plugin of the same name."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import shutil
import subprocess
import tempfile

from ansible.module_utils.basic import AnsibleModule

from ansible.module_utils.hostcard.command import SEARCH_PATH
from ansible.module_utils.hostcard.files import fingerprint
from ansible.module_utils.hostcard.wanted import DEFAULTS, differs

DOCUMENTATION = """
module: file_set
short_description: Write a set of files in one round trip
description:
  - Each file is written beside its destination and renamed over it, so a reader sees the old or the new one.
  - Templates are rendered by the action plugin on the control node; this module gets their text.
options:
  files:
    description: What must be there. Order is kept, so a folder stands before its files.
    type: list
    elements: dict
    required: true
    suboptions:
      dest: {description: Absolute path., type: path, required: true}
      state: {description: What it is., choices: [file, directory, absent], default: file, type: str}
      content: {description: Text of a file., type: str}
      mode: {description: "Octal, quoted.", type: str, default: "0644"}
      owner: {description: Name or number., type: str, default: root}
      group: {description: Name or number., type: str, default: root}
      validate: {description: "Command that must accept the new file first; C(%s) is its path.", type: str}
author: [Gradferry]
"""

SUBOPTIONS = {
    "dest": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["file", "directory", "absent"], "default": "file"},
    "content": {"type": "str"},
    "mode": {"type": "str", "default": DEFAULTS["mode"]},
    "owner": {"type": "str", "default": DEFAULTS["owner"]},
    "group": {"type": "str", "default": DEFAULTS["group"]},
    "validate": {"type": "str"},
}


class Refused(Exception):
    """The set cannot be brought about; the message names the path."""


def number(name: str, lookup, field: str) -> int:
    if name.isdigit():
        return int(name)
    try:
        return getattr(lookup(name), field)
    except KeyError:
        raise Refused(f"no user or group `{name}` on this host") from None


def validate(command: str, path: str, dest: str) -> None:
    argv = [part.replace("%s", path) for part in shlex.split(command)]
    argv[0] = shutil.which(argv[0], path=SEARCH_PATH) or argv[0]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{dest}: refused by `{command}`: {(done.stderr or done.stdout).strip()[-600:]}")


def write(want: dict) -> None:
    """Replace `dest` by a new file with this content, mode and owner; never a moment with half of it."""
    folder = os.path.dirname(want["dest"])
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor, path = tempfile.mkstemp(prefix=".gradferry-", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(want["content"])
            stream.flush()
            os.fsync(stream.fileno())
        if want["validate"]:
            validate(want["validate"], path, want["dest"])
        own(path, want)
        os.rename(path, want["dest"])
    except BaseException:
        os.unlink(path)
        raise


def own(path: str, want: dict) -> None:
    os.chown(path, number(want["owner"], pwd.getpwnam, "pw_uid"), number(want["group"], grp.getgrnam, "gr_gid"))
    os.chmod(path, int(want["mode"], 8))


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def bring_about(want: dict, seen: dict | None) -> None:
    kind = (seen or {}).get("kind")
    if want["state"] == "absent":
        remove(want["dest"])
    elif want["state"] == "directory":
        if kind not in (None, "directory"):
            raise Refused(f"{want['dest']}: is a file here, a folder is wanted")
        os.makedirs(want["dest"], exist_ok=True)
        own(want["dest"], want)
    elif kind == "directory":
        raise Refused(f"{want['dest']}: is a folder here, a file is wanted")
    else:
        write(want)


def text_now(path: str, seen: dict | None) -> str:
    if not seen or seen["kind"] != "file":
        return ""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def header(dest: str, about: dict | None) -> str:
    return f"{dest} ({about['owner']}:{about['group']} {about['mode']})" if about else f"{dest} (absent)"


def difference(want: dict, seen: dict | None) -> dict:
    after = None if want["state"] == "absent" else want
    return {
        "before_header": header(want["dest"], seen),
        "after_header": header(want["dest"], after),
        "before": text_now(want["dest"], seen),
        "after": want["content"] or "" if after else "",
    }


def main() -> None:
    spec = {"files": {"type": "list", "elements": "dict", "required": True, "options": SUBOPTIONS}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    changed, diff = [], []
    for want in module.params["files"]:
        want["content"] = want["content"] or ""
        seen = fingerprint(want["dest"])
        if not differs(want, seen):
            continue
        changed.append(want["dest"])
        diff.append(difference(want, seen))
        if module.check_mode:
            continue
        try:
            bring_about(want, seen)
        except (OSError, Refused) as problem:
            module.fail_json(msg=str(problem), changed=len(changed) > 1, changed_files=changed[:-1], diff=diff)
    now = {want["dest"]: fingerprint(want["dest"]) for want in module.params["files"]}
    module.exit_json(changed=bool(changed), changed_files=changed, diff=diff, now=now)


if __name__ == "__main__":
    main()
