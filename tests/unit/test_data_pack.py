"""Packing: the same samples give the same bytes; a folder is whole or not there; what is odd is named."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.config import Data
from trainer.data.dataset import Dataset, open_dataset
from trainer.data.index import read_index
from trainer.data.pack import ensure_packed, pack
from trainer.data.sources import Options
from trainer.data.sources.debian_docs import debian_docs
from trainer.data.sources.text import sequences
from trainer.errors import DataError


def arrays(folder: Path, rows: int = 20) -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / "x.npy", np.arange(rows * 3, dtype=np.float64).reshape(rows, 3))
    np.save(folder / "y.npy", np.arange(rows, dtype=np.int32))
    return folder


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return pack(str(arrays(tmp_path / "in")), tmp_path / "out", Options()).folder


def test_samples_come_back_in_the_order_asked_for(packed: Path) -> None:
    dataset = open_dataset(packed)
    batch = dataset.batch([3, 0, 3])
    assert (batch["x"].dtype, batch["y"].dtype) == (torch.float32, torch.int64)
    assert batch["y"][0] == batch["y"][2] != batch["y"][1]
    assert torch.equal(batch["x"][:, 0], batch["y"] * 3.0)


def test_what_is_held_out_is_in_no_training_sample(packed: Path) -> None:
    dataset = open_dataset(packed)
    train, held_out = (set(d.batch(range(len(d)))["y"].tolist()) for d in (dataset, dataset.held_out))
    assert train | held_out == set(range(20))
    assert not train & held_out
    assert len(held_out) == 2


def test_a_second_pack_changes_nothing(tmp_path: Path, packed: Path) -> None:
    open_dataset(packed)
    before = {path.name: path.stat().st_ino for path in packed.iterdir()}
    again = pack(str(tmp_path / "in"), packed, Options())
    assert not again.changed
    assert {path.name: path.stat().st_ino for path in packed.iterdir()} == before


def test_the_same_samples_give_the_same_bytes_anywhere(tmp_path: Path, packed: Path) -> None:
    other = pack(str(tmp_path / "in"), tmp_path / "elsewhere", Options())
    assert other.index == read_index(packed)


def test_changed_samples_replace_the_folder(tmp_path: Path, packed: Path) -> None:
    old = open_dataset(packed)
    arrays(tmp_path / "in", rows=30)
    assert pack(str(tmp_path / "in"), packed, Options()).changed
    assert len(open_dataset(packed)) == 27
    assert len(old.batch([0])["y"]) == 1  # who had the old files open still has them


def test_what_a_killed_pack_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".out.packing").mkdir()
    (tmp_path / ".out.packing" / "half.h5").write_bytes(b"half")
    pack(str(arrays(tmp_path / "in")), tmp_path / "out", Options())
    assert not (tmp_path / ".out.packing").exists()
    assert not (tmp_path / "out" / "half.h5").exists()
    assert len(open_dataset(tmp_path / "out")) == 18


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="exists and is not packed data"):
        pack(str(arrays(tmp_path / "in")), tmp_path / "out", Options())
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_damaged_file_is_found_also_after_it_was_verified(packed: Path) -> None:
    open_dataset(packed)
    damage(packed / "train.h5")
    with pytest.raises(DataError, match=r"train\.h5: sha256 is .* the file is damaged"):
        open_dataset(packed)


def test_a_file_cut_short_is_found(packed: Path) -> None:
    (packed / "eval.h5").write_bytes((packed / "eval.h5").read_bytes()[:-8])
    with pytest.raises(DataError, match=r"eval\.h5: .* cut short or altered"):
        open_dataset(packed)


def test_a_missing_file_is_found(packed: Path) -> None:
    (packed / "eval.h5").unlink()
    with pytest.raises(DataError, match=r"eval\.h5: No such file"):
        open_dataset(packed)


def test_a_verified_folder_is_not_read_through_again(packed: Path) -> None:
    open_dataset(packed)
    path = packed / "train.h5"
    seen = path.stat()
    damage(path)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    open_dataset(packed)  # the mark says it was compared; nothing a stat shows has changed since


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged"),
        ('{"schema_version": 2}', "schema version 2, this gradferry reads 1"),
        ("[]", "damaged"),
        ('{"schema_version": 1, "kind": "images"}', "damaged"),
    ],
)
def test_an_index_that_cannot_be_read_is_an_error_for_a_person(packed: Path, text: str, message: str) -> None:
    (packed / "index.json").write_text(text)
    with pytest.raises(DataError, match=message):
        open_dataset(packed)


def test_an_index_cannot_point_out_of_its_folder(packed: Path) -> None:
    index = json.loads((packed / "index.json").read_text())
    index["splits"]["train"]["file"] = "../../etc/passwd"
    (packed / "index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match="damaged"):
        open_dataset(packed)


def test_an_index_without_one_of_the_splits_is_damaged(packed: Path) -> None:
    index = json.loads((packed / "index.json").read_text())
    del index["splits"]["train"]
    (packed / "index.json").write_text(json.dumps(index))
    with pytest.raises(DataError, match=r"damaged \(splits eval, expected train and eval\)"):
        open_dataset(packed)


def test_data_that_was_never_packed_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder") as told:
        open_dataset(tmp_path / "nowhere")
    assert "gradferry pack SOURCE" in str(told.value)


def test_a_sample_that_is_not_there_is_refused(packed: Path) -> None:
    with pytest.raises(DataError, match="sample ids 0-18 asked, 18 are there"):
        open_dataset(packed).batch([0, 18])


def test_no_samples_are_an_empty_batch(packed: Path) -> None:
    assert open_dataset(packed).batch([])["x"].shape == (0, 3)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("z.npy", b"not numpy", r"z\.npy: not a plain \.npy array"),
        ("y.npy", np.arange(7), r"x\.npy has 20 rows, y\.npy has 7 rows"),
        ("z.npy", np.array([{"a": 1}] * 20, dtype=object), r"z\.npy: not a plain \.npy array"),
        ("z.npy", np.array(["a"] * 20), "expected numbers"),
    ],
)
def test_an_array_that_does_not_fit_is_named(tmp_path: Path, name: str, content: object, message: str) -> None:
    folder = arrays(tmp_path / "in")
    if isinstance(content, bytes):
        (folder / name).write_bytes(content)
    else:
        np.save(folder / name, content, allow_pickle=True)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=message):
        pack(str(folder), tmp_path / "out", Options())
    assert not (tmp_path / "out").exists()


def test_an_archive_that_is_named_as_an_array_is_told(tmp_path: Path) -> None:
    folder = arrays(tmp_path / "in")
    with (folder / "z.npy").open("wb") as file:
        np.savez(file, z=np.arange(20))
    with pytest.raises(DataError, match=r"z\.npy: not a plain \.npy array: an archive"):
        pack(str(folder), tmp_path / "out", Options())


def test_an_unknown_source_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Did you mean `digits`"):
        pack("digit", tmp_path / "out", Options())


def test_digits_are_packed_when_a_run_asks_for_them_and_only_once(tmp_path: Path) -> None:
    said: list[str] = []
    data = Data(path=str(tmp_path / "digits"), pack="digits")
    ensure_packed(data, said.append)
    dataset: Dataset = open_dataset(data.path)
    assert (len(dataset), len(dataset.held_out)) == (1438, 359)
    batch = dataset.batch(range(1438))
    assert batch["x"].shape == (1438, 8, 8)
    assert (float(batch["x"].min()), float(batch["x"].max())) == (0.0, 1.0)
    assert len(said) == 2
    ensure_packed(data, said.append)
    assert len(said) == 2


def test_text_files_become_sequences_of_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    for name in "abcdefgh":
        (folder / f"{name}.txt").write_text(name * 100)
    pack(str(folder), tmp_path / "out", Options(sequence=16))
    tokens = open_dataset(tmp_path / "out").batch([0, 1])["tokens"]
    assert tokens.shape == (2, 17)
    assert tokens[0, -1] == tokens[1, 0]  # every byte is predicted once


@given(st.binary(min_size=40, max_size=400), st.integers(1, 12))
def test_every_byte_but_the_first_is_predicted_at_most_once(text: bytes, sequence: int) -> None:
    samples = sequences([("one", text)], "t", sequence, 0.5)
    cut = samples.train["tokens"]
    predicted = cut[:, 1:].reshape(-1).tobytes()  # type: ignore[call-overload]
    assert text[1:].startswith(predicted)
    assert len(text) * 0.5 - 1 - len(predicted) <= sequence


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("short")
    with pytest.raises(DataError, match="too few for sequences of 129 bytes"):
        pack(str(tmp_path / "a.txt"), tmp_path / "out", Options())


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(DataError, match=r"photo\.jpg: not UTF-8 text"):
        pack(str(tmp_path / "in"), tmp_path / "out", Options())


def test_the_distributions_text_is_distinct_bounded_and_the_same_each_time(tmp_path: Path) -> None:
    for package in range(30):
        folder = tmp_path / "doc" / f"package{package}"
        folder.mkdir(parents=True)
        (folder / "copyright").write_text("the same licence\n" * 50)
        (folder / "changelog.gz").write_bytes(gzip.compress(f"version {package}\n".encode() * 100))
        (folder / "logo.png").write_bytes(b"\x89PNG")
    found = [
        debian_docs(32, None, lambda done, total: None, folders=[tmp_path / "doc"], enough_bytes=20_000) for _ in "ab"
    ]
    assert np.array_equal(found[0].train["tokens"], found[1].train["tokens"])
    text = found[0].train["tokens"].tobytes() + found[0].held_out["tokens"].tobytes()
    assert 15_000 < len(text) < 25_000
    assert text.count(b"the same licence\n") <= 52


def test_a_machine_without_text_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only 0 bytes of text"):
        debian_docs(32, None, lambda done, total: None, folders=[tmp_path])
