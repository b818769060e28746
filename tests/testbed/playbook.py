"""Run a playbook as a user would, in ansible/, and read its recap."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import BedError

_RECAP = re.compile(r"^(\S+)\s+: ((?:\w+=\d+\s*)+)$")
Line = Callable[[str], None]


@dataclass(frozen=True)
class Recap:
    """One host's line at the end of a playbook."""

    ok: int
    changed: int
    failed: int
    unreachable: int


@dataclass(frozen=True)
class Outcome:
    """What a run of a playbook came to."""

    command: tuple[str, ...]
    code: int
    started: float  # unix seconds
    wall_s: float
    recaps: Mapping[str, Recap]
    output: str

    @property
    def changed(self) -> int:
        """Over all hosts and the control node."""
        return sum(recap.changed for recap in self.recaps.values())

    def check(self) -> Outcome:
        """Itself; raises BedError with the end of the output unless it ended well on every host."""
        bad = [host for host, recap in self.recaps.items() if recap.failed or recap.unreachable]
        if self.code or bad or not self.recaps:
            tail = "\n".join(self.output.strip().splitlines()[-40:])
            raise BedError(f"{' '.join(self.command)} ended with {self.code}, failed on {bad}:\n{tail}")
        return self


@dataclass(frozen=True)
class Ansible:
    """How to call ansible-playbook: in `folder`, on `inventory`. `before`: words put before the command (nsenter)."""

    folder: Path
    inventory: Path
    log_folder: Path
    before: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None

    def play(self, playbook: str, *arguments: str, name: str | None = None, line: Line | None = None) -> Outcome:
        """Run it to its end. Output goes to `log_folder`/`name`.log and, line by line, to `line`."""
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        command = (*self.before, program, "-i", str(self.inventory), playbook, *arguments)
        self.log_folder.mkdir(parents=True, exist_ok=True)
        log = self.log_folder / f"{name or Path(playbook).stem}.log"
        started, begin = time.time(), time.monotonic()
        code, output = self._run(command, log, line)
        wall_s = time.monotonic() - begin
        return Outcome(command[len(self.before) :], code, started, wall_s, recaps(output), output)

    def _run(self, command: Sequence[str], log: Path, line: Line | None) -> tuple[int, str]:
        colourless = {
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "PYTHONUNBUFFERED": "1",
        }
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | colourless | dict(self.environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None  # PIPE
        lines = []
        try:
            with log.open("w") as file:
                for text in process.stdout:
                    lines.append(text)
                    file.write(text)
                    file.flush()
                    if line:
                        line(text.rstrip())
            return process.wait(), "".join(lines)
        finally:
            if process.poll() is None:  # left by Ctrl-C or an error: ansible must not go on behind our back
                process.terminate()
                process.wait()


def recaps(output: str) -> dict[str, Recap]:
    """Host -> its recap, from a playbook's output. Empty where it did not come to its end."""
    found: dict[str, Recap] = {}
    for line in output.partition("PLAY RECAP")[2].splitlines():
        if match := _RECAP.match(line.rstrip()):
            counts = {name: int(value) for name, value in (word.split("=") for word in match[2].split())}
            found[match[1]] = Recap(counts["ok"], counts["changed"], counts["failed"], counts["unreachable"])
    return found
