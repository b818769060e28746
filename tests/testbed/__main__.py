"""The test bed by hand: .venv/bin/python -m tests.testbed up|down|demo|clean|list|engine|base-image ..."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.testbed import by_hand
from tests.testbed.interrupts import stop_on_signals
from trainer.errors import GradferryError

INTERRUPTED = 130


def main() -> int:
    asked = _parser().parse_args()
    stop_on_signals()
    try:
        asked.run(asked)
    except GradferryError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("testbed: interrupted; what was started has been removed", file=sys.stderr)
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser("up", help="start hosts and write their inventory")
    p.add_argument("--name", default=by_hand.LOCAL)
    p.add_argument("--hosts", type=int, choices=(1, 2, 3), default=3)
    p.add_argument("--plain", action="store_true", help="new hosts without Docker, instead of ready ones")
    p.set_defaults(run=by_hand.start)
    p = commands.add_parser("down", help="remove the hosts of one bed")
    p.add_argument("--name", default=by_hand.LOCAL)
    p.set_defaults(run=by_hand.stop)
    p = commands.add_parser("demo", help="set up, train, redeploy and tear down three hosts; ends with a picture")
    p.set_defaults(run=by_hand.demonstrate)
    p = commands.add_parser("clean", help="remove everything that this clone made on the engine, caches too")
    p.set_defaults(run=by_hand.clean)
    p = commands.add_parser("timings", help="how long site.yml takes on a bed that is up and training")
    p.add_argument("--name", default=by_hand.LOCAL)
    p.add_argument("--run-file", type=Path, default=Path("run.yml"))
    p.add_argument("--setting", default="accum_steps=6", help="one that is new to the running trainers")
    p.set_defaults(run=by_hand.measure)
    p = commands.add_parser("list", help="names of the beds of this clone")
    p.set_defaults(run=by_hand.show)
    p = commands.add_parser("engine", help="make sure that a Docker engine runs")
    p.set_defaults(run=by_hand.engine)
    p = commands.add_parser("base-image", help="make sure that the CPU base image is there; print its tag")
    p.set_defaults(run=by_hand.base_image)
    return parser


if __name__ == "__main__":
    sys.exit(main())
