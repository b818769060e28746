"""The test bed by hand: .venv/bin/python -m tests.testbed up|down|clean|list|base-image ..."""

from __future__ import annotations

import argparse
import sys

from tests.testbed.bed import remove, up, workshop
from tests.testbed.errors import BedError
from tests.testbed.plan import THREE, Plan


def main() -> int:
    asked = _parser().parse_args()
    try:
        return int(asked.run(asked) or 0)
    except BedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser("up", help="start hosts and write their inventory")
    p.add_argument("--name", default="local")
    p.add_argument("--hosts", type=int, choices=(1, 2, 3), default=3)
    p.add_argument("--plain", action="store_true", help="new hosts without Docker, instead of ready ones")
    p.set_defaults(run=_up)
    p = commands.add_parser("down", help="remove the hosts of one bed")
    p.add_argument("--name", default="local")
    p.set_defaults(run=_down)
    p = commands.add_parser("base-image", help="make sure that the CPU base image is there; print its tag")
    p.set_defaults(run=_base_image)
    return parser


def _say(line: str) -> None:
    print(f"testbed: {line}", file=sys.stderr, flush=True)


def _up(asked: argparse.Namespace) -> None:
    plan = Plan(asked.name, THREE[: asked.hosts], "plain" if asked.plain else "ready")
    bed = up(workshop(_say), plan)
    print(bed.inventory)


def _down(asked: argparse.Namespace) -> None:
    _say(f"removed {remove(workshop(_say), asked.name)} containers, networks and volumes of bed {asked.name}")


def _base_image(asked: argparse.Namespace) -> None:
    print(workshop(_say).images.tag("base"))


if __name__ == "__main__":
    sys.exit(main())
