"""Run a program of the host for what it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

# A login by SSH without a shell profile may lack the sbin folders, where `nft`, `wg-quick` and `sshd` live.
SEARCH_PATH = os.pathsep.join(
    ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/snap/bin")
)
DEADLINE_S = 20.0


def find(program: str) -> str | None:
    """Full path of `program`, or None where the host does not have it."""
    return shutil.which(program, path=SEARCH_PATH)


def output_of(argv: Sequence[str]) -> str | None:
    """Standard output of `argv`; None where the program is missing, fails, or does not answer in time."""
    program = find(argv[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *argv[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=DEADLINE_S,
            env={"PATH": SEARCH_PATH, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def text_of(path: str) -> str | None:
    """Stripped content of a small text file; None where it is missing or cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return None
