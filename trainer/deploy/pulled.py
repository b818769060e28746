"""The folder that a teardown pulls, and that `-e resume=FOLDER` goes on from.

pulled.json is its index: cluster, checkpoint, and the sha256 of every file. Nothing counts that is not in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.errors import CheckpointError, ConfigError

INDEX = "pulled.json"


@dataclass(frozen=True)
class Pulled:
    """checkpoint: name, step and digest of its manifest; None where the run had made none. files: path -> sha256."""

    cluster: str
    checkpoint: Mapping[str, Any] | None
    files: Mapping[str, str]

    def checkpoint_files(self) -> dict[str, str]:
        """Name -> sha256 of the files of the checkpoint."""
        prefix = f"checkpoints/{self.checkpoint['name']}/" if self.checkpoint else "\0"
        return {path.removeprefix(prefix): digest for path, digest in self.files.items() if path.startswith(prefix)}

    def histories(self) -> dict[str, str]:
        prefix = "history/"
        return {path.removeprefix(prefix): digest for path, digest in self.files.items() if path.startswith(prefix)}


def read_pulled(folder: Path) -> Pulled:
    """Raises ConfigError where `folder` is not such a folder."""
    try:
        pulled = Pulled(**json.loads((folder / INDEX).read_text(encoding="utf-8")))
        if not isinstance(pulled.files, dict) or not isinstance(pulled.checkpoint, dict | None):
            raise ValueError("no list of files in it")
        return pulled
    except FileNotFoundError:
        raise ConfigError(
            f"resume = {folder}: no {INDEX} in it", "Give the folder that teardown.yml said, under artifacts/"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"resume = {folder}: {INDEX} is damaged ({error})", "Give another folder") from None


def write_pulled(folder: Path, pulled: Pulled) -> None:
    (folder / INDEX).write_text(json.dumps(asdict(pulled), indent=2, sort_keys=True) + "\n", encoding="utf-8")


def verify_files(folder: Path, pulled: Pulled) -> None:
    """Raises CheckpointError naming the first file that is missing or altered, or that the checkpoint's own manifest
    knows otherwise."""
    for path, digest in pulled.files.items():
        if sha256_of(folder / path) != digest:
            raise CheckpointError(
                f"{folder / path}: missing, or not the file that was pulled (sha256 differs)",
                "Give an unaltered copy of the folder",
            )
    if pulled.checkpoint is None:
        return
    held = pulled.checkpoint_files()
    inside = folder / "checkpoints" / pulled.checkpoint["name"]
    listed = _part(folder, inside / "manifest.json", "files")
    for name, entry in listed.items():
        if held.get(name) != entry["sha256"]:
            raise CheckpointError(f"{inside / name}: not the file that the checkpoint's manifest lists")


def check_resumable(pulled: Pulled, folder: Path, run: Mapping[str, Any]) -> None:
    """Raises ConfigError where `run` (a resolved run) is not the one whose folder this is."""
    if pulled.cluster != run["name"]:
        raise ConfigError(
            f"resume = {folder}: holds the run {pulled.cluster}, run.yml names {run['name']}",
            f"Set name: {pulled.cluster} to go on with it",
        )
    if pulled.checkpoint is None:
        raise ConfigError(
            f"resume = {folder}: holds no checkpoint", "Leave resume away: the run starts from the beginning"
        )
    old = _part(folder, folder / "run.json", "run")
    if old.get("seed") != run["seed"]:
        raise ConfigError(
            f"resume = {folder}: its seed is {old.get('seed')}, run.yml has {run['seed']}",
            f"Set seed: {old.get('seed')}: another one deals the samples out in another order",
        )
    if old["model"] != run["model"]:
        raise ConfigError(
            f"resume = {folder}: its model is {_model(old)}, run.yml has {_model(run)}",
            "A checkpoint fits its own model only",
        )


def sha256_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _part(folder: Path, path: Path, name: str) -> dict[str, Any]:
    """One object of a file of the folder. Raises ConfigError where the folder is not complete."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))[name]
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"resume = {folder}: {path.name} cannot be read ({reason})", "Give a whole folder") from None
    if not isinstance(found, dict):
        raise ConfigError(f"resume = {folder}: {path.name} has no {name}", "Give a whole folder")
    return found


def _model(run: Mapping[str, Any]) -> str:
    return f"{run['model']['factory']} {json.dumps(run['model']['args'], sort_keys=True)}"
