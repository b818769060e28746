"""What the trainer image is made from on this machine, as inventory variables of the role trainer_image.

The base is the test bed's own CPU image. Wheels come through this environment's pip, whose configuration (index,
mirror, certificates) a container would not have; where the base has another Python than this environment, the build
asks the index itself.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.testbed.errors import BedError
from tests.testbed.folders import Folders
from tests.testbed.workshop import Workshop

PYTHON_OF = {"bookworm": (3, 11), "trixie": (3, 13)}


def build_variables(shop: Workshop, bed: str) -> dict[str, str]:
    """Variables for every host of `bed`. Made on first use: base image, wheelhouse, a volume for the registry's layers.

    The registry's container is labelled as the bed's: a playbook that is interrupted may leave it.
    """
    labels = [f"{name}={value}" for name, value in shop.owner(bed).labels("registry").items()]
    volume = f"{shop.owner('shared').prefix}-registry"
    shop.client.volumes.create(volume, labels=shop.owner().labels("registry"))
    wheels = _wheelhouse(shop) if PYTHON_OF.get(shop.images.suite) == sys.version_info[:2] else None
    index = os.environ.get("TORCH_INDEX", "")
    return {
        "trainer_image_base": shop.images.tag("base"),
        "trainer_image_registry_volume": volume,
        "trainer_image_registry_labels": json.dumps(labels),
        **({"trainer_image_wheelhouse": str(wheels)} if wheels else {}),
        **({"trainer_image_torch_index": index} if index and not wheels else {}),
    }


def wheels_images(folders: Folders) -> list[str]:
    """Names of the images that carried this clone's wheelhouses into a build, there or not. The build names them."""
    path = folders.root / "docker" / "recipe.py"
    spec = importlib.util.spec_from_file_location("trainer_image_recipe", path)
    assert spec is not None and spec.loader is not None  # a file of this clone
    recipe = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = recipe  # dataclasses look their module up
    spec.loader.exec_module(recipe)
    return [str(recipe.wheels_image(folder)) for folder in folders.cache.glob("wheels-*")]


def _wheelhouse(shop: Workshop) -> Path:
    """Folder with the wheels that the clone's pins name."""
    root = shop.folders.root
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    asked = json.dumps([project["dependencies"], project["optional-dependencies"]["train"]])
    pins = hashlib.sha256(asked.encode() + (root / "constraints.txt").read_bytes()).hexdigest()[:12]
    folder = shop.folders.cache / f"wheels-{pins}"
    if not folder.is_dir():
        shop.say("fetching the trainer's wheels")
        script = root / "docker" / "wheelhouse.sh"
        done = subprocess.run(["sh", str(script), str(folder), sys.executable], capture_output=True, text=True)
        if done.returncode:
            raise BedError(f"{script.name} failed: {done.stderr.strip()[-300:]}", "Is a package index reachable?")
    return folder
