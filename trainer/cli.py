"""The command line: check, pack, train, status, plot, audit, smoke.

What a user can put right is a message on stderr and exit status 2, never a traceback. Torch is imported only by the
commands that compute, so that the control node can do without.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trainer.arguments import parse
from trainer.errors import EXIT_COME_BACK, EXIT_USER, ComeBack, DataError, GradferryError

if TYPE_CHECKING:
    from trainer.status.rows import Row

EXIT_INTERRUPTED = 130
EXIT_NOT_KEPT = 1
OPTIONAL = ("torch", "numpy", "h5py", "safetensors", "prometheus_client")  # what a control node can do without
WATCH_S = 1.0
RUNS = Path("runs")  # state folders of runs on this machine
WIDE = 180  # columns where the output is not a terminal


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    arguments = parse(argv)
    try:
        code = COMMANDS[arguments.command](arguments)
        sys.stdout.flush()  # here, so that a full disk or a closed pipe behind it is told below
        return code
    except GradferryError as error:
        print(f"gradferry: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        print(f"gradferry: this needs {error.name}, which is not installed here", file=sys.stderr)
        print("  pip install 'gradferry[train]'", file=sys.stderr)
        return EXIT_USER
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `gradferry status | head`
        _leave_stdout()
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"gradferry: {where}{error.strerror or error}", file=sys.stderr)
        try:
            sys.stdout.flush()
        except OSError:
            _leave_stdout()
        # A file is the user's to mend. What has no name (a connection, a device) is gone by the next start.
        return EXIT_COME_BACK if arguments.command == "train" and error.filename is None else EXIT_USER


def _leave_stdout() -> None:
    """Nothing can be written there any more: what is still in the buffer is not tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check(arguments: argparse.Namespace) -> int:
    """Print what a run file comes to."""
    from trainer.config import load_run
    from trainer.preview import preview, resolved

    run = load_run(arguments.run, arguments.override)
    print("\n".join([*preview(run, arguments.replicas), "", *resolved(run)]))
    return 0


def train(arguments: argparse.Namespace) -> int:
    """Train; the exit status is that of the run."""
    from trainer.config import load_run
    from trainer.data.pack import ensure_packed

    run = load_run(arguments.run, arguments.override)
    with _Progress(f"packing {run.data.pack}") as progress:
        ensure_packed(run.data, _say, progress)
    from trainer.run import train as train_run

    state = arguments.state or RUNS / run.name
    try:
        return train_run(
            run, state=state, host=arguments.host, source=arguments.run, overrides=arguments.override, say=_say
        )
    except ComeBack as error:
        print(f"gradferry: {error}", file=sys.stderr, flush=True)
        _leave_at_once(error.exit_code)


def _leave_at_once(code: int) -> NoReturn:
    """Without the interpreter's own end, which takes the broken process group apart and waits for what hangs in it."""
    sys.stdout.flush()
    os._exit(code)


def pack(arguments: argparse.Namespace) -> int:
    """Pack a source into a folder."""
    from trainer.data.pack import pack as pack_source
    from trainer.data.sources import Options

    options = Options(arguments.sequence, arguments.eval_fraction)
    with _Progress(f"packing {arguments.source}") as say:
        packed = pack_source(arguments.source, arguments.folder, options, say)
    if arguments.json:
        print(
            json.dumps(
                {"folder": str(packed.folder), "changed": packed.changed, **packed.index.model_dump(mode="json")}
            )
        )
    else:
        print(f"{packed.folder}: {packed.index.describe()}{'' if packed.changed else ' (unchanged)'}")
    return 0


def status(arguments: argparse.Namespace) -> int:
    """Show a table of ranks, once or until Ctrl-C."""
    from rich.console import Console

    from trainer.status.rows import row_values
    from trainer.status.table import render

    ask = _asker(arguments)
    if arguments.json:
        print(json.dumps([row_values(row) for row in ask()]))
        return 0
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    if not arguments.watch:
        console.print(render(ask()))
        return 0
    from rich.live import Live

    with Live(render(ask()), console=console, auto_refresh=False) as live:
        while True:  # until Ctrl-C
            time.sleep(WATCH_S)
            live.update(render(ask()), refresh=True)


def plot(arguments: argparse.Namespace) -> int:
    """Draw histories to a file."""
    from trainer.records.history import read_histories
    from trainer.status.plot import plot as draw

    draw(read_histories(*arguments.folder), arguments.out, arguments.title)
    print(arguments.out)
    return 0


def audit(arguments: argparse.Namespace) -> int:
    """Judge histories; 0 where every promise was kept, else 1."""
    from trainer.records.checkers import EverySampleOnce, OneHistory, StepsWithoutGap
    from trainer.records.history import read_histories
    from trainer.records.verdict import Broken, Kept, check

    histories = read_histories(*arguments.folder)
    report = check(histories, EverySampleOnce(arguments.samples), OneHistory(), StepsWithoutGap())
    for name, verdict in report.verdicts.items():
        told = verdict.note if isinstance(verdict, Kept) else verdict.why
        word = "kept" if isinstance(verdict, Kept) else "BROKEN" if isinstance(verdict, Broken) else "unknown"
        print(f"{name:<16} {word:<8} {told}")
    return 0 if isinstance(report.worst, Kept) else EXIT_NOT_KEPT


def smoke(arguments: argparse.Namespace) -> int:
    """Check the device; one JSON line."""
    from trainer.smoke import main as smoke_main

    return smoke_main()


def _say(text: str) -> None:
    print(text, flush=True)  # at once, also into a journal


def _asker(arguments: argparse.Namespace) -> Callable[[], list[Row]]:
    """What to call for the rows: on hosts of an inventory, or in a state folder here."""
    from trainer.status.hosts import known_hosts_of, read_inventory, rows_of_hosts
    from trainer.status.rows import rows_of_state

    if arguments.inventory is not None:
        targets, known_hosts = read_inventory(arguments.inventory), known_hosts_of(arguments.inventory)
        return lambda: rows_of_hosts(targets, known_hosts)
    state = arguments.state or _newest_run(RUNS)
    return lambda: rows_of_state(state, time.time())


def _newest_run(folder: Path) -> Path:
    runs = sorted(
        (p for p in folder.glob("*") if (p / "status").is_dir()), key=lambda p: (p / "status").stat().st_mtime
    )
    if not runs:
        raise DataError(f"{folder}: no run in it", "Give --state DIR, or -i INVENTORY to ask the hosts")
    return runs[-1]


class _Progress:
    """A bar on stderr for what takes long: `with _Progress("packing") as say: say(done, total)`; silent in a pipe."""

    def __init__(self, text: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self._task = self._bar.add_task(text, total=None)

    def __enter__(self) -> Callable[[int, int], None]:
        return self._show

    def _show(self, done: int, total: int) -> None:
        self._bar.start()  # again does nothing; not before there is something to show
        self._bar.update(self._task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "check": check,
    "train": train,
    "pack": pack,
    "status": status,
    "plot": plot,
    "audit": audit,
    "smoke": smoke,
}


if __name__ == "__main__":
    sys.exit(main())
