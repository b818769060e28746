"""What a teardown pulled is verified before hosts go on from it, and belongs to one run."""

import hashlib
import json

import pytest

from trainer.config import Run
from trainer.deploy.pulled import Pulled, check_resumable, read_pulled, verify_files, write_pulled
from trainer.errors import CheckpointError, ConfigError

RUN = Run(name="digits").model_dump(mode="json")
STEP = "checkpoints/step-00000120"


@pytest.fixture
def folder(tmp_path):
    """A folder as a teardown leaves it."""
    inside = tmp_path / STEP
    inside.mkdir(parents=True)
    (tmp_path / "history").mkdir()
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        (inside / name).write_text(f"content of {name}")
    listed = {p.name: {"bytes": p.stat().st_size, "sha256": sha(p)} for p in sorted(inside.iterdir())}
    (inside / "manifest.json").write_text(json.dumps({"step": 120, "files": listed}))
    (tmp_path / "history" / "ap-1-0.jsonl").write_text("{}\n")
    (tmp_path / "run.json").write_text(json.dumps({"run": RUN, "revision": "0", "hosts": []}))
    files = {p.relative_to(tmp_path).as_posix(): sha(p) for p in tmp_path.rglob("*") if p.is_file()}
    write_pulled(tmp_path, Pulled("digits", {"name": "step-00000120", "step": 120}, files))
    return tmp_path


def sha(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_unaltered_folder_of_this_run_is_good(folder):
    pulled = read_pulled(folder)
    verify_files(folder, pulled)
    check_resumable(pulled, folder, RUN)
    assert set(pulled.checkpoint_files()) == {
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    }
    assert set(pulled.histories()) == {"ap-1-0.jsonl"}


def test_an_altered_file_is_named(folder):
    (folder / STEP / "model.safetensors").write_text("something else")
    with pytest.raises(CheckpointError, match=r"model\.safetensors: missing, or not the file that was pulled"):
        verify_files(folder, read_pulled(folder))


def test_a_file_that_the_checkpoints_own_manifest_does_not_know_is_named(folder):
    altered = folder / STEP / "state.json"
    altered.write_text("forged, and the index with it")
    old = read_pulled(folder)
    forged = Pulled(old.cluster, old.checkpoint, {**old.files, f"{STEP}/state.json": sha(altered)})
    with pytest.raises(CheckpointError, match=r"state\.json: not the file that the checkpoint's manifest lists"):
        verify_files(folder, forged)


def test_the_folder_of_another_run_is_refused(folder):
    with pytest.raises(ConfigError, match=r"holds the run digits, run\.yml names words"):
        check_resumable(read_pulled(folder), folder, RUN | {"name": "words"})


def test_the_folder_of_another_model_is_refused(folder):
    other = RUN | {"model": {"factory": "cnn", "args": {}}}
    with pytest.raises(ConfigError, match=r"its model is mlp \{\}, run\.yml has cnn \{\}"):
        check_resumable(read_pulled(folder), folder, other)


def test_the_folder_of_another_seed_is_refused(folder):
    with pytest.raises(ConfigError, match=r"its seed is 17, run\.yml has 18"):
        check_resumable(read_pulled(folder), folder, RUN | {"seed": 18})


@pytest.mark.parametrize("name", ["run.json", f"{STEP}/manifest.json"])
def test_a_folder_that_is_not_whole_is_named(folder, name):
    (folder / name).unlink()
    old = read_pulled(folder)
    pulled = Pulled(old.cluster, old.checkpoint, {path: digest for path, digest in old.files.items() if path != name})
    with pytest.raises(ConfigError, match=r"(run|manifest)\.json cannot be read \(No such file"):
        verify_files(folder, pulled)
        check_resumable(pulled, folder, RUN)


def test_an_index_without_files_is_damaged(folder):
    (folder / "pulled.json").write_text('{"cluster": "digits", "checkpoint": null, "files": null}')
    with pytest.raises(ConfigError, match=r"pulled\.json is damaged"):
        read_pulled(folder)


def test_any_other_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no pulled\.json in it"):
        read_pulled(tmp_path)
    (tmp_path / "pulled.json").write_text("[1, 2]")
    with pytest.raises(ConfigError, match=r"pulled\.json is damaged"):
        read_pulled(tmp_path)


def test_a_run_that_had_made_no_checkpoint_cannot_be_gone_on_from(folder):
    with pytest.raises(ConfigError, match="holds no checkpoint"):
        check_resumable(Pulled("digits", None, {}), folder, RUN)
