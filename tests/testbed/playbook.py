"""Run a playbook as a user would, in ansible/, and read its recap."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import BedError

_RECAP = re.compile(r"^(\S+)\s+: ((?:\w+=\d+\s*)+)$")


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


@dataclass
class Running:
    """A playbook under way. Leaving its block ends it: it must not go on behind our back after Ctrl-C or an error."""

    command: tuple[str, ...]
    log: Path
    process: subprocess.Popen[bytes]
    started: float
    begin: float

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def task(self) -> str:
        """Name of the task that it is at."""
        names = self._tasks()
        return names[-1] if names else ""

    def reached(self, task: str) -> bool:
        """True once a task with `task` in its name has begun; it may be over again by now."""
        return any(task in name for name in self._tasks())

    def _tasks(self) -> list[str]:
        return re.findall(r"^(?:TASK|RUNNING HANDLER) \[(.*)\] \*", self.log.read_text(errors="replace"), re.M)

    def finish(self, meanwhile: Callable[[], object] | None = None, every_s: float = 1.0) -> Outcome:
        """Its outcome, when it has ended; `meanwhile` is called about every `every_s`."""
        while True:
            try:
                code = self.process.wait(every_s if meanwhile else None)
                break
            except subprocess.TimeoutExpired:
                if meanwhile:
                    meanwhile()
        wall_s = time.monotonic() - self.begin
        output = self.log.read_text(errors="replace")
        return Outcome(self.command, code, self.started, wall_s, recaps(output), output)


@dataclass(frozen=True)
class Ansible:
    """How to call ansible-playbook: in `folder`, on `inventory`. `before`: words put before the command (nsenter)."""

    folder: Path
    inventory: Path
    log_folder: Path
    before: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None

    def play(self, playbook: str, *arguments: str, name: str | None = None) -> Outcome:
        """Run a playbook to its end."""
        with self.start(playbook, *arguments, name=name) as running:
            return running.finish()

    def start(self, playbook: str, *arguments: str, name: str | None = None) -> Running:
        """Begin it; output goes to `log_folder`/`name`.log (default: the playbook's name)."""
        program = str(Path(sys.executable).with_name("ansible-playbook"))
        command = (program, "-i", str(self.inventory), playbook, *arguments)
        self.log_folder.mkdir(parents=True, exist_ok=True)
        log = self.log_folder / f"{name or Path(playbook).stem}.log"
        config = {"ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "PYTHONUNBUFFERED": "1"}
        started, begin = time.time(), time.monotonic()
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*self.before, *command],
                cwd=self.folder,
                env=os.environ | config | dict(self.environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        return Running(command, log, process, started, begin)


def recaps(output: str) -> dict[str, Recap]:
    """Host -> its recap, from a playbook's output. Empty where it did not come to its end."""
    found: dict[str, Recap] = {}
    for line in output.partition("PLAY RECAP")[2].splitlines():
        if match := _RECAP.match(line.rstrip()):
            counts = {name: int(value) for name, value in (word.split("=") for word in match[2].split())}
            found[match[1]] = Recap(counts["ok"], counts["changed"], counts["failed"], counts["unreachable"])
    return found
