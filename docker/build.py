"""Build the trainer image if its content changed: `python docker/build.py --base IMAGE [--wheelhouse FOLDER]`.

Progress goes to stderr, one JSON line to stdout: reference, content, id, built, seconds.
Uses the engine's classic builder, which every engine has; nothing in the Dockerfile needs more.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

import docker
from docker.errors import DockerException, ImageNotFound
from recipe import Recipe, build_files, context, wheels, wheels_image


def main() -> None:
    """Exit status 2 with one message where the build is not possible."""
    arguments = _arguments()
    wheelhouse = _filled(arguments.wheelhouse)
    recipe = Recipe(
        base=arguments.base,
        repository=arguments.repository,
        torch_index=arguments.torch_index,
        pip_index=arguments.pip_index,
        wheels=wheels_image(wheelhouse),
        files=build_files(arguments.root, tuple(arguments.package)),
    )
    try:
        client = docker.from_env(timeout=600)
        print(json.dumps(ensure(client, recipe, wheelhouse, only_look=arguments.check)))
    except DockerException as error:
        _refuse(f"The Docker engine of this machine does not answer: {error}", "Start it, or set DOCKER_HOST")


def ensure(client: docker.DockerClient, recipe: Recipe, wheelhouse: Path | None, *, only_look: bool) -> dict[str, Any]:
    """The image of `recipe`, built where it is not there yet."""
    start = time.monotonic()
    identity, built = _identity(client, recipe.reference), False
    if identity is None:
        built = True
        if not only_look:
            _build(client, recipe, wheelhouse)
            identity = _identity(client, recipe.reference)
    seconds = round(time.monotonic() - start, 1)
    return {
        "reference": recipe.reference,
        "content": recipe.content,
        "id": identity,
        "built": built,
        "seconds": seconds,
    }


def _build(client: docker.DockerClient, recipe: Recipe, wheelhouse: Path | None) -> None:
    arguments = {
        "BASE": recipe.base,
        "TORCH_INDEX": recipe.torch_index,
        "PIP_INDEX_URL": recipe.pip_index,
        "CONTENT": recipe.content,
    }
    if recipe.wheels and wheelhouse:
        if _identity(client, recipe.wheels) is None:
            _say(f"wheelhouse {wheelhouse} -> {recipe.wheels}")
            _run(client, _wheels_context(wheelhouse), {}, recipe.wheels)
        arguments["WHEELS"] = recipe.wheels
    _run(client, context(recipe), arguments, recipe.reference)


def _run(client: docker.DockerClient, archive: Any, arguments: dict[str, str], tag: str) -> None:
    """One build; steps are said as they come, the end of the output where it fails."""
    output: list[str] = []
    with archive:
        stream = client.api.build(
            fileobj=archive, custom_context=True, encoding="utf-8", buildargs=arguments, tag=tag, rm=True, decode=True
        )
        for line in stream:
            text = str(line.get("stream", "")).strip()
            output += [text] if text else []
            if text.startswith(("Step ", "install-deps:")):
                _say(text)
            if "error" in line:
                tail = " | ".join(part for part in output[-4:] if not part.startswith("--->"))
                _refuse(f"Image {tag} cannot be built: {line['error']}", f"Last output: {tail[:600]}")


def _wheels_context(folder: Path) -> Any:
    """FROM scratch with the wheels, in a file: hundreds of megabytes do not belong in memory."""
    archive = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with tarfile.open(fileobj=archive, mode="w") as tar:
        text = b"FROM scratch\nCOPY wheels /wheels\n"
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
        for wheel in wheels(folder):
            tar.add(wheel, f"wheels/{wheel.name}")
    archive.seek(0)
    return archive


def _filled(folder: Path | None) -> Path | None:
    """`folder` if it holds wheels. A named folder without any is a mistake: the build would take gigabytes instead."""
    if folder is None or wheels(folder):
        return folder
    _refuse(f"No wheels in {folder}", f"Fill it with docker/wheelhouse.sh {folder}, or leave the wheelhouse out")


def _identity(client: docker.DockerClient, reference: str) -> str | None:
    try:
        return str(client.images.get(reference).id)
    except ImageNotFound:
        return None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the clone")
    parser.add_argument("--base", required=True, help="base image: a CUDA one, or a CPU one")
    parser.add_argument("--repository", default="gradferry/trainer")
    parser.add_argument("--torch-index", default="", help="a further index for pip, such as PyTorch's CPU builds")
    parser.add_argument("--pip-index", default="", help="index in place of PyPI")
    parser.add_argument("--wheelhouse", type=Path, help="folder with wheels, pip's among them; no index is asked then")
    parser.add_argument("--package", action="append", default=[], help="a further package (may be repeated)")
    parser.add_argument("--check", action="store_true", help="only say whether it would be built")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _refuse(what: str, cure: str) -> NoReturn:
    _say(f"{what}\n  {cure}")
    raise SystemExit(2)


if __name__ == "__main__":
    main()
