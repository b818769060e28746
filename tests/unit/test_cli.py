"""The command line as a user meets it: examples that work, mistakes that are told, never a traceback."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.cli import COMMANDS as COMMAND_TABLE
from trainer.cli import main
from trainer.records.events import Started, Step
from trainer.records.history import History, history_path
from trainer.smoke import smoke

REPOSITORY = Path(__file__).parents[2]
COMMANDS = ("check", "train", "pack", "status", "plot", "audit", "smoke")


def test_every_command_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
        assert f"example:\n  gradferry {command}" in capsys.readouterr().out


def test_check_spells_out_the_virtual_batch(capsys: pytest.CaptureFixture[str]) -> None:
    example = str(REPOSITORY / "examples" / "digits.yml")
    assert main(["check", example, "--replicas", "3", "data.path=nowhere/yet", "accumulation.accum_steps=8"]) == 0
    out = capsys.readouterr().out
    assert "micro_batch 8 × accum_steps 8 × replicas 3 = 192: global batch 192 samples a step" in out
    assert "lr 0.3 for batch 96 × 2 (linear: 192/96) = 0.6" in out
    assert "* accumulation.accum_steps = 8" in out
    assert "`gradferry train` packs digits first" in out


def test_check_reckons_with_packed_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "digits", str(tmp_path / "digits")]) == 0
    example = str(REPOSITORY / "examples" / "digits.yml")
    assert main(["check", example, f"data.path={tmp_path / 'digits'}", "--replicas", "3"]) == 0
    out = capsys.readouterr().out
    assert "15 in an epoch of 1438 samples, 8 epochs: 120 optimizer steps" in out
    assert "9,610 parameters; takes this data" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "nowhere.yml"], "nowhere.yml: no such file"),
        (["check", "{example}", "accumulation.acum_steps=8"], "Did you mean `accum_steps`"),
        (["check", "{example}", "model.factory=mpl"], "Did you mean `mlp`"),
        (["check", "{example}", "data.path=nowhere", "data.pack=null"], "nowhere: no such folder"),
        (["pack", "nowhere", "out"], "source nowhere: no such file or folder"),
        (["status", "--state", "nowhere"], "nowhere: no such state folder"),
        (["status"], "runs: no run in it"),
        (["status", "-i", "nowhere.ini"], "nowhere.ini: no such inventory"),
        (["plot", "nowhere"], "nowhere: no such folder"),
        (["audit", "nowhere"], "nowhere: no such folder"),
        (["pack", "digits", "/proc/1/here"], "/proc/1"),
    ],
)
def test_a_mistake_is_told_in_at_most_three_lines_and_exits_with_2(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    example = str(REPOSITORY / "examples" / "digits.yml")
    assert main([argument.format(example=example) for argument in arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("gradferry: ")
    assert len(err.splitlines()) <= 3


@pytest.mark.parametrize(
    "arguments", [["chek"], [], ["pack", "digits"], ["pack", "a", "b", "--sequence", "0"], ["pack", "a", "b", "c=d"]]
)
def test_a_command_line_that_cannot_be_read_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_pack_tells_machines_whether_anything_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = []
    for _ in range(2):
        assert main(["pack", "digits", str(tmp_path / "digits"), "--json"]) == 0
        changed.append(json.loads(capsys.readouterr().out)["changed"])
    assert changed == [True, False]


def history(state: Path, *windows: tuple[int, int]) -> None:
    with History(history_path(state, "a", 0), "a", 0) as writer:
        writer.write(Started(world=1, run="t", revision="r", accum_steps=4, global_batch=32, samples=8))
        for number, (start, stop) in enumerate(windows, 1):
            writer.write(Step(step=number, epoch=0, start=start, stop=stop, read=((start, stop),), loss=0.5))


def test_audit_passes_a_run_that_read_each_sample_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history(tmp_path, (0, 4), (4, 8))
    assert main(["audit", str(tmp_path)]) == 0
    assert "EverySampleOnce  kept     1 whole epochs of 8 samples, 2 windows" in capsys.readouterr().out


def test_audit_finds_a_run_that_did_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history(tmp_path, (0, 4), (5, 8))
    assert main(["audit", str(tmp_path)]) == 1
    assert "BROKEN   epoch 0: positions 4-5 are in no step" in capsys.readouterr().out


def test_plot_writes_the_picture(tmp_path: Path) -> None:
    history(tmp_path, (0, 4), (4, 8))
    assert main(["plot", str(tmp_path), "--out", str(tmp_path / "run.png")]) == 0
    assert (tmp_path / "run.png").stat().st_size > 1000


def test_the_control_node_needs_nothing_heavy_for_what_it_does(tmp_path: Path) -> None:
    """check, status and audit in a Python without torch, numpy and h5py; pack says what it needs."""
    history(tmp_path / "state", (0, 4))
    (tmp_path / "state" / "status").mkdir()
    commands = [
        ["check", str(REPOSITORY / "examples" / "digits.yml")],
        ["status", "--state", "state", "--json"],
        ["audit", "state"],
    ]
    script = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('torch', 'numpy', 'h5py'): raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        f"from trainer.cli import main\nassert main(['pack', 'digits', 'digits']) == 2\n"
        f"sys.exit(max(main(c) for c in {commands!r}))"
    )
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "not checked: torch is not installed here" in done.stdout
    assert "this needs numpy, which is not installed here" in done.stderr or "needs h5py" in done.stderr


def test_smoke_computes_on_what_is_there() -> None:
    result = smoke()
    assert result.ok and result.gflops > 0 and result.problem is None


def test_a_full_output_is_told_and_exits_with_2() -> None:
    command = [sys.executable, "-m", "trainer.cli", "check", str(REPOSITORY / "examples" / "digits.yml")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=REPOSITORY)
    assert (done.returncode, done.stderr) == (2, "gradferry: No space left on device\n")


def test_any_error_of_the_system_is_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "runs/x")

    monkeypatch.setitem(COMMAND_TABLE, "smoke", full)
    assert main(["smoke"]) == 2
    assert capsys.readouterr().err == "gradferry: runs/x: No space left on device\n"
