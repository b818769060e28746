"""python3 -m wan TABLE.json --folder DIR [--hook FORWARD] [--owner PID]: run the emulator in this network namespace."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from .emulator import Emulator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="for wan.sock and wan.jsonl")
    parser.add_argument("--hook", default="FORWARD")
    parser.add_argument("--first-queue", type=int, default=100)
    parser.add_argument("--owner", type=int, help="end with this process")
    asked = parser.parse_args()
    owner = None if asked.owner is None else os.pidfd_open(asked.owner)
    Emulator(json.loads(asked.table.read_text()), asked.folder, asked.hook, asked.first_queue, owner).run()


if __name__ == "__main__":
    main()
