"""Whether the trainer image must be built again follows from its content, and from nothing else."""

import importlib.util
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("image_recipe", ROOT / "docker" / "recipe.py")
recipe = importlib.util.module_from_spec(_spec)
sys.modules["image_recipe"] = recipe
_spec.loader.exec_module(recipe)


@pytest.fixture
def clone(tmp_path):
    """What the build reads of a clone."""
    for name in (
        *recipe.CONTEXT,
        "pyproject.toml",
        "docker/trainer.Dockerfile",
        "trainer/__init__.py",
        "trainer/cli.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def of(root: Path, base: str = "debian:bookworm-slim", wheelhouse: Path | None = None):
    return recipe.Recipe(base, "gradferry/trainer", "", "", recipe.wheels_image(wheelhouse), recipe.build_files(root))


def test_the_same_content_gives_the_same_image(clone):
    before = of(clone).reference
    (clone / "trainer" / "__pycache__").mkdir()
    (clone / "trainer" / "__pycache__" / "cli.pyc").write_bytes(b"cache")
    (clone / "README.md").write_text("not part of the image")
    assert of(clone).reference == before


@pytest.mark.parametrize(
    "name", ["trainer/cli.py", "constraints.txt", "docker/install-deps.sh", "docker/trainer.Dockerfile"]
)
def test_a_change_of_anything_in_it_gives_another_image(clone, name):
    before = of(clone).content
    (clone / name).write_text((clone / name).read_text() + "\n# changed\n")
    assert of(clone).content != before


def test_another_base_or_other_wheels_give_another_image(clone, tmp_path):
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "torch-1.whl").write_bytes(b"12")
    first = of(clone, wheelhouse=wheels)
    assert len({of(clone).content, of(clone, base="ubuntu:24.04").content, first.content}) == 3
    (wheels / "torch-1.whl").write_bytes(b"123")
    assert of(clone, wheelhouse=wheels).wheels != first.wheels


def test_the_container_gets_torch_and_not_ansible(clone):
    wanted = recipe.requirements(clone, ("transformers",)).split()
    assert {"torch", "pydantic", "transformers"} <= set(wanted)
    assert not {"ansible-core", "docker"} & set(wanted)


def test_the_build_context_is_small_and_holds_no_history_or_data(clone):
    archive = recipe.context(of(clone))
    assert len(archive.getvalue()) < 1 << 20
    with tarfile.open(fileobj=archive) as tar:
        assert {"Dockerfile", "requirements.txt", "trainer/cli.py"} <= set(tar.getnames())
        assert not [name for name in tar.getnames() if name.startswith((".git", "data", "tests"))]
