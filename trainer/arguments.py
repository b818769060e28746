"""What may be typed behind `gradferry`: commands, their options, an example for each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer import __version__


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for: `command` is its name. Overrides may also stand behind options, unlike in argparse.

    Exits with 2 and a message for what cannot be read, with 0 for --help.
    """
    parser = _parser()
    arguments, rest = parser.parse_known_args(argv)
    behind = [text for text in rest if "=" in text and not text.startswith("-")]
    if rest and (len(behind) < len(rest) or not hasattr(arguments, "override")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if behind:
        arguments.override = [*arguments.override, *behind]
    return arguments


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN.yml", help="the run file")
    parser.add_argument("override", nargs="*", metavar="FIELD=VALUE", help="such as accumulation.accum_steps=8")


def _check_options(parser: argparse.ArgumentParser) -> None:
    _run_options(parser)
    parser.add_argument(
        "--replicas", type=_positive, default=1, metavar="N", help="replicas to reckon with (default 1)"
    )


def _train_options(parser: argparse.ArgumentParser) -> None:
    _run_options(parser)
    parser.add_argument("--state", type=Path, metavar="DIR", help="checkpoints, history, status (default runs/NAME)")
    parser.add_argument("--host", metavar="NAME", help="this host's name in the inventory (default: its own)")


def _pack_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="SRC", help="digits, debian-docs, text file or folder, or folder of .npy files"
    )
    parser.add_argument("folder", type=Path, metavar="DST", help="folder to write")
    parser.add_argument(
        "--sequence", type=_positive, default=128, metavar="T", help="tokens that a text sample predicts"
    )
    parser.add_argument("--eval-fraction", type=_fraction, metavar="F", help="share of the samples that is held out")
    parser.add_argument("--json", action="store_true", help="print the index, and whether anything changed")


def _status_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="of a run on this machine (default: the newest in runs/)"
    )
    parser.add_argument("-i", "--inventory", type=Path, metavar="FILE", help="ask the hosts of an inventory over SSH")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--watch", action="store_true", help="go on showing, until Ctrl-C")


def _plot_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", type=Path, metavar="FOLDER", help="state folders, or folders of histories")
    parser.add_argument("--out", type=Path, default=Path("run.png"), metavar="FILE", help="picture (default run.png)")
    parser.add_argument("--title", default="", metavar="TEXT")


def _audit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", type=Path, metavar="FOLDER", help="state folders, or folders of histories")
    parser.add_argument("--samples", type=_positive, metavar="N", help="samples of an epoch, where no history says so")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share between 0 and 1")
    return value


@dataclass(frozen=True)
class Command:
    """A line of `gradferry --help`, an example that works as it stands, and what else may be given."""

    text: str
    example: str
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None


COMMANDS: Mapping[str, Command] = {
    "check": Command("show what a run file comes to", "check run.yml --replicas 3", _check_options),
    "train": Command(
        "train a run file's model", "train examples/digits.yml accumulation.accum_steps=8", _train_options
    ),
    "pack": Command("pack data into one folder that is read fast", "pack digits data/digits", _pack_options),
    "status": Command("show who trains what", "status -i inventory.ini --watch", _status_options),
    "plot": Command("draw loss and speed over time", "plot runs/digits --out digits.png", _plot_options),
    "audit": Command("judge by a run's histories: was each sample used once?", "audit runs/digits", _audit_options),
    "smoke": Command("check that this machine's device computes", "smoke"),
}


def _parser() -> argparse.ArgumentParser:
    about = "Train one PyTorch model on hosts that are far apart."
    parser = argparse.ArgumentParser(prog="gradferry", description=about)
    parser.add_argument("--version", action="version", version=f"gradferry {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", dest="command")
    for name, command in COMMANDS.items():
        added = commands.add_parser(
            name,
            help=command.text,
            description=f"{command.text[0].upper()}{command.text[1:]}.",
            epilog=f"example:\n  gradferry {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.options(added)
    return parser
