"""What hosts are given to start their trainer, word for word. Meant changes: GOLDEN=write pytest tests/templates"""

import os
import shutil
import subprocess

import pytest
from jinja2 import UndefinedError

from tests.templates.cases import CASES, GOLDEN, TEMPLATES, rendered_case
from trainer.deploy.hostfiles import rendered


@pytest.mark.parametrize("name", CASES)
def test_the_files_of_a_host_are_the_golden_ones(name):
    texts = rendered_case(name)
    folder = GOLDEN / name
    if os.environ.get("GOLDEN") == "write":
        shutil.rmtree(folder, ignore_errors=True)
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
    kept = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert texts == kept


@pytest.mark.parametrize("name", CASES)
def test_systemd_accepts_the_units(name, tmp_path):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not installed here")
    for path, text in rendered_case(name).items():
        if path.endswith(".service"):
            # docker need not be installed where the unit is checked
            unit = tmp_path / "gradferry-trainer.service"
            unit.write_text(text.replace("/usr/bin/docker", "/bin/true"))
            done = subprocess.run([verify, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
            assert (done.returncode, _about(unit.name, done.stderr)) == (0, [])


def test_systemd_would_refuse_a_broken_unit(tmp_path):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is not installed here")
    unit = tmp_path / "gradferry-trainer.service"
    unit.write_text("[Service]\nType=exec\nExecStart=/bin/true\nRestartSecs=2\n")
    done = subprocess.run([verify, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert done.returncode or _about(unit.name, done.stderr)


def test_a_value_that_a_template_does_not_know_is_an_error():
    with pytest.raises(UndefinedError):
        rendered(TEMPLATES / "trainer_service", "trainer.env.j2", {"host": "ap-1", "run": "digits"})


def test_every_file_says_what_rendered_it():
    for text in rendered_case("three_hosts").values():
        assert text.startswith("# Rendered from templates/trainer_service/")


def _about(unit: str, said: str) -> list[str]:
    """Lines of systemd-analyze about our unit; it also speaks of the machine's own."""
    return [line for line in said.splitlines() if unit in line]
