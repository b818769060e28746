"""What a checkpoint folder must hold: a list of its files with size and sha256. Pure of torch."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from trainer.errors import CheckpointError

MANIFEST = "manifest.json"
FILES = ("model.safetensors", "optimizer.safetensors", "state.json")


@dataclass(frozen=True)
class Manifest:
    """files: name -> (bytes, sha256). `digest` stands for the whole checkpoint."""

    step: int
    files: dict[str, tuple[int, str]]

    @classmethod
    def of(cls, step: int, folder: Path) -> Manifest:
        return cls(step, {name: ((folder / name).stat().st_size, sha256_of(folder / name)) for name in FILES})

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text().encode()).hexdigest()

    @property
    def bytes(self) -> int:
        return sum(size for size, _ in self.files.values())

    def text(self) -> str:
        files = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in self.files.items()}
        return json.dumps({"step": self.step, "files": files}, indent=2, sort_keys=True) + "\n"

    @classmethod
    def parse(cls, text: str, where: str) -> Manifest:
        """Raises CheckpointError where it is no manifest."""
        try:
            values = json.loads(text)
            files = {str(n): (int(f["bytes"]), str(f["sha256"])) for n, f in values["files"].items()}
            found = cls(int(values["step"]), files)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{where}/{MANIFEST}: damaged ({type(error).__name__}: {error})") from None
        if set(found.files) != set(FILES):
            raise CheckpointError(f"{where}/{MANIFEST}: lists {sorted(found.files)}, expected {sorted(FILES)}")
        return found

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        try:
            return cls.parse((folder / MANIFEST).read_text(encoding="utf-8"), str(folder))
        except (OSError, UnicodeDecodeError) as error:
            raise CheckpointError(f"{folder}/{MANIFEST}: cannot be read: {error}") from None

    def complete(self, folder: Path) -> bool:
        """Whether all files are there in their length; `verify` reads them too."""
        paths = [(folder / name, size) for name, (size, _) in self.files.items()]
        return all(path.is_file() and path.stat().st_size == size for path, size in paths)

    def verify(self, folder: Path) -> None:
        """Raises CheckpointError naming the first file that is missing, cut short or altered."""
        for name, (size, digest) in self.files.items():
            path = folder / name
            if not path.is_file():
                raise CheckpointError(f"{path}: missing, the manifest lists it")
            if path.stat().st_size != size:
                raise CheckpointError(f"{path}: {path.stat().st_size} bytes, the manifest says {size}: cut short")
            if sha256_of(path) != digest:
                raise CheckpointError(f"{path}: its sha256 is not the manifest's: altered or damaged")


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
