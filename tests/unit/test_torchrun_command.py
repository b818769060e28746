"""Where a host has several devices, the unit sees the exit status that a worker ended with."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.wait import wait_for

COMMAND = Path(__file__).parents[2] / "docker" / "commands" / "torchrun"


def start(script: str) -> subprocess.Popen[str]:
    """Two workers, each a shell with `script`."""
    argv = [sys.executable, str(COMMAND), "--standalone", "--nproc-per-node=2", "--max-restarts=0", "--no-python"]
    return subprocess.Popen(
        [*argv, "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("status", [0, 2, 75])
def test_the_status_of_a_worker_is_the_status_of_all(status):
    with start(f"exit {status}") as process:
        assert process.wait(120) == status


def test_after_a_stop_it_ends_with_zero_when_the_workers_have_drained(tmp_path):
    drains = f"trap 'touch {tmp_path}/drained-$RANK; exit 0' TERM; touch {tmp_path}/up-$RANK"
    for_a_while = "for turn in $(seq 600); do sleep 0.1; done"  # it ends by itself if the test fails
    with start(f"{drains}; {for_a_while}") as process:
        wait_for(lambda: len(list(tmp_path.glob("up-*"))) == 2 or None, "both workers", within_s=120)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    assert sorted(path.name for path in tmp_path.glob("drained-*")) == ["drained-0", "drained-1"]
