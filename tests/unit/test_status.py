"""What a person sees: rows, table, curves, and how hosts are asked."""

from __future__ import annotations

import io
import json
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

from trainer.errors import ConfigError, DataError, HostError
from trainer.records.events import Evaluated, Event, Resumed, Settings, Started, Step
from trainer.records.history import Entry, Histories
from trainer.records.status import Status, StatusFile
from trainer.status.curves import Mark, curves_of
from trainer.status.hosts import (
    Target,
    known_hosts_of,
    read_inventory,
    remote_command,
    rows_of_hosts,
    ssh_command,
    targets_of,
)
from trainer.status.plot import plot
from trainer.status.rows import Row, rows_of, rows_of_state
from trainer.status.table import COLUMNS, age_text, cells, render, size_text

TRAINING = Status(
    host="sin", rank=0, t=100.0, state="training", region="ap", step=12, epoch=1, window=3, accum_steps=4,
    global_batch=96, loss=0.25, samples_per_s=480.0, peak_bytes=412_000_000, lr=0.3, revision="cafe", last_event="step",
)  # fmt: skip


def text_of(status: Status) -> str:
    return json.dumps(asdict(status))


def shown(rows: list[Row]) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(render(rows))
    return console.export_text()


def test_a_rank_that_trains_shows_every_column() -> None:
    [row] = rows_of("sin", "", [text_of(TRAINING)], now_s=103.0)
    assert cells(row) == [
        *("sin", "ap", "0", "training", "12", "1", "3", "4", "96"),
        *("0.2500", "480", "412 MB", "0.3", "cafe", "step", "3 s"),
    ]
    assert len(cells(row)) == len(COLUMNS)


def test_a_host_that_is_silent_is_a_row_that_says_so() -> None:
    table = shown([Row("fra", "eu", problem="Connection refused"), *rows_of("sin", "", [text_of(TRAINING)], 100.0)])
    lines = [line for line in table.splitlines() if line.strip()]
    assert lines[1].startswith("sin") and lines[2].startswith("fra")
    assert "Connection refused" in lines[2]


def test_a_host_without_status_and_one_with_a_damaged_one_say_so() -> None:
    assert rows_of("sin", "ap", [], 0.0) == [Row("sin", "ap", problem="no status yet")]
    [row] = rows_of("sin", "ap", ['{"host": "sin"}'], 0.0)
    assert row.problem.startswith("damaged status:")


@pytest.mark.parametrize(
    "change",
    [{"step": "12"}, {"rank": None}, {"t": "now"}, {"accum_steps": 4.0}, {"loss": [1]}, {"host": 3}, {"lr": 10**400}],
)
def test_a_status_with_a_value_of_another_kind_is_damaged(change: dict[str, object]) -> None:
    rows = rows_of("sin", "", [json.dumps(asdict(TRAINING) | change), text_of(TRAINING)], 100.0)
    assert f"damaged status: {next(iter(change))} = " in shown(rows)
    assert [row.status for row in rows] == [None, TRAINING]


def test_a_status_file_of_other_bytes_is_a_row_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "status").mkdir()
    (tmp_path / "status" / "sin-0.json").write_bytes(b"\xff\xfe")
    (tmp_path / "status" / "sin-1.json").write_bytes(b"[" * 200_000)
    assert [row.problem[:15] for row in rows_of_state(tmp_path, 0.0)] == ["damaged status:"] * 2


def test_brackets_are_shown_as_they_are() -> None:
    assert "no [/etc] here" in shown([Row("fra", "[red]eu", problem="no [/etc] here")])


def test_a_rank_not_heard_of_for_long_is_marked_unless_it_ended() -> None:
    over = Status(host="sin", rank=1, t=100.0, state="ended")
    old, ended = rows_of("sin", "", [text_of(TRAINING), text_of(over)], now_s=500.0)
    assert old.stale and "training?" in cells(old)
    assert not ended.stale


def test_the_state_folder_of_a_run_is_read_while_it_is_written(tmp_path: Path) -> None:
    for rank in (1, 0):
        StatusFile(tmp_path, "sin", rank).write(Status(host="sin", rank=rank, t=time.time()), now=True)
    assert [row.status.rank for row in rows_of_state(tmp_path, time.time()) if row.status] == [0, 1]
    with pytest.raises(DataError, match="no such state folder"):
        rows_of_state(tmp_path / "nowhere", 0.0)


def test_what_is_sent_to_a_host_prints_its_time_and_its_status_files(tmp_path: Path) -> None:
    StatusFile(tmp_path, "sin", 0).write(TRAINING, now=True)
    done = subprocess.run(["sh", "-c", remote_command(str(tmp_path))], capture_output=True, text=True, check=True)
    clock, *texts = done.stdout.splitlines()
    assert abs(float(clock) - time.time()) < 60
    assert [row.status for row in rows_of("sin", "", texts, 0.0)] == [TRAINING]


INVENTORY = {
    "_meta": {
        "hostvars": {
            "sin": {"ansible_host": "203.0.113.5", "region": "ap"},
            "fra": {
                "ansible_host": "203.0.113.6",
                "ansible_port": 2222,
                "ansible_user": "debian",
                "ansible_ssh_private_key_file": "/keys/my key",
                "ansible_ssh_common_args": "-J jump@203.0.113.9",
            },
            "localhost": {},
        }
    },
    "hosts": {"hosts": ["sin", "fra"]},
}


def test_hosts_are_reached_as_the_inventory_says() -> None:
    sin, fra = targets_of(INVENTORY)
    assert (sin.address, sin.region, sin.port) == ("203.0.113.5", "ap", None)
    command = ssh_command(fra, Path("/x/inventory.known_hosts"), "true")
    assert command[0] == "ssh" and command[-4:] == ["-J", "jump@203.0.113.9", "203.0.113.6", "true"]
    for option in ("Port=2222", "User=debian", 'IdentityFile="/keys/my key"', "BatchMode=yes"):
        assert command[command.index(option) - 1] == "-o"
    assert 'UserKnownHostsFile="/x/inventory.known_hosts"' in command


@pytest.mark.parametrize(
    ("name", "value"),
    [("ansible_port", "ssh"), ("ansible_port", 70000), ("ansible_ssh_common_args", "-J 'jump")],
)
def test_a_host_that_cannot_be_reached_as_written_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match="^sin: "):
        targets_of({"_meta": {"hostvars": {"sin": {name: value}}}})


def test_what_ansible_says_of_a_broken_inventory_is_shown(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text('[hosts]\nsin ansible_host="203.0.113.5\n')
    with pytest.raises(HostError, match="Ansible cannot read it: .*No closing quotation"):
        read_inventory(inventory)


def test_the_keys_of_hosts_stand_beside_the_inventory(tmp_path: Path) -> None:
    assert known_hosts_of(tmp_path / "inventory.ini") == tmp_path / "inventory.known_hosts"


def test_an_inventory_is_read_by_ansible_itself(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text("[hosts]\nsin ansible_host=203.0.113.5 region=ap\n\n[others]\nbuild\n")
    assert [(t.name, t.address, t.region) for t in read_inventory(inventory)] == [("sin", "203.0.113.5", "ap")]


def test_an_inventory_that_is_not_there_is_an_error_for_a_person(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no such inventory"):
        read_inventory(tmp_path / "inventory.ini")


def test_hosts_that_do_not_answer_are_rows_and_delay_nobody(tmp_path: Path) -> None:
    targets = [Target(f"host{n}", "127.0.0.1", "eu", port=1) for n in range(3)]  # nothing listens on port 1
    rows = rows_of_hosts(targets, tmp_path / "known_hosts")
    assert [row.host for row in rows] == ["host0", "host1", "host2"]
    assert all("refused" in row.problem for row in rows)


@pytest.mark.parametrize(
    ("age_s", "text"), [(None, "–"), (0.2, "0 s"), (119, "119 s"), (300, "5 min"), (10800, "3 h"), (200000, "2 d")]
)
def test_ages_are_short(age_s: float | None, text: str) -> None:
    assert age_text(age_s) == text


def test_sizes_are_short() -> None:
    assert [size_text(n) for n in (None, 412_000_000, 15_300_000_000)] == ["–", "412 MB", "15.3 GB"]


def told(*events: Event) -> Histories:
    return Histories(tuple(Entry(100.0 + i, "sin", 0, event) for i, event in enumerate(events)))


def step(number: int, loss: float | None) -> Step:
    return Step(step=number, epoch=0, start=number, stop=number + 1, read=(), loss=loss, samples_per_s=10.0)


STARTED = Started(world=1, run="t", revision="r", accum_steps=4, global_batch=32)
CHANGE = Settings(step=1, revision="c", before={"accumulation.accum_steps": 4}, after={"accumulation.accum_steps": 8})
RUN = told(
    *(STARTED, step(1, 2.0), CHANGE, step(2, None), Evaluated(step=2, loss=1.0, accuracy=0.5)),
    *(STARTED, Resumed(step=1, source="here"), step(2, 1.0)),
)


def test_curves_tell_loss_accuracy_changes_and_resumes_in_seconds_since_the_start() -> None:
    curves = curves_of(RUN)
    assert (curves.t_s, curves.steps, curves.loss) == ((1.0, 3.0, 7.0), (1, 2, 2), (2.0, None, 1.0))
    assert curves.accuracy == ((4.0, 0.5),)
    assert curves.marks == (
        Mark(2.0, "settings", "step 1: accum_steps 4 → 8"),
        Mark(6.0, "resumed", "resumed at step 1"),
    )


def test_a_run_is_drawn_without_a_display(tmp_path: Path) -> None:
    plot(RUN, tmp_path / "pictures" / "run.png", "digits")
    assert (tmp_path / "pictures" / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_title_is_drawn_as_it_was_written(tmp_path: Path) -> None:
    plot(RUN, tmp_path / "run.png", r"1 $\frac and 2$")
    assert (tmp_path / "run.png").exists()


def test_a_history_without_steps_is_not_drawn(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no step to draw"):
        plot(told(STARTED), tmp_path / "run.png")
