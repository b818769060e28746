"""Put an image into a registry on this machine's loopback: `python docker/push.py REFERENCE --cluster NAME`.

The registry is a container that publishes one port on 127.0.0.1, chosen by the engine so that two clusters never meet;
hosts reach it through an SSH reverse forward. Its storage is a volume that stays, so the next push sends only what is
new. One JSON line on stdout: port, repository, tag, pushed_bytes, layers (digest -> compressed bytes), seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NoReturn

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

PORT = "5000/tcp"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
START_TIMEOUT_S = 20.0


def main() -> None:
    arguments = _arguments()
    try:
        client = docker.from_env(timeout=1800)
        if arguments.stop:
            print(json.dumps({"stopped": stop(client, arguments.cluster)}))
            return
        print(json.dumps(push(client, arguments)))
    except DockerException as error:
        _refuse(
            f"The image cannot be put into the local registry: {error}", "See `docker info` and the free disk space"
        )


def push(client: docker.DockerClient, arguments: argparse.Namespace) -> dict[str, Any]:
    """Start the registry, push, and say what lies there now."""
    start = time.monotonic()
    port = _registry(client, arguments)
    _wait_until_it_answers(port)
    repository, _, tag = arguments.reference.rpartition(":")
    local = f"127.0.0.1:{port}/{repository}"
    client.api.tag(arguments.reference, local, tag)
    try:
        new = _push(client, local, tag)
    finally:
        client.api.remove_image(f"{local}:{tag}")
    layers = _layers(port, repository, tag)
    uncompressed = client.images.get(arguments.reference).attrs["RootFS"]["Layers"]  # same order; what a push names
    sent = sum(size for layer, size in zip(uncompressed, layers.values(), strict=False) if layer[7:19] in new)
    return {
        "port": port,
        "repository": repository,
        "tag": tag,
        "layers": layers,
        "pushed_bytes": sent,
        "seconds": round(time.monotonic() - start, 1),
    }


def stop(client: docker.DockerClient, cluster: str) -> bool:
    """Remove the registry's container; its storage stays."""
    try:
        client.containers.get(_name(cluster)).remove(force=True)
    except NotFound:
        return False
    return True


def _registry(client: docker.DockerClient, arguments: argparse.Namespace) -> int:
    """The port of the running registry, which is started where it does not run."""
    try:
        container = client.containers.get(_name(arguments.cluster))
        container.start()
    except NotFound:
        container = client.containers.run(
            _image(client, arguments),
            name=_name(arguments.cluster),
            detach=True,
            ports={PORT: ("127.0.0.1", None)},
            volumes={arguments.volume: {"bind": "/var/lib/registry", "mode": "rw"}},
            environment={
                "REGISTRY_LOG_LEVEL": "warn",
            },
            labels=dict(label.split("=", 1) for label in arguments.label),
        )
    container.reload()
    return int(container.attrs["NetworkSettings"]["Ports"][PORT][0]["HostPort"])


def _image(client: docker.DockerClient, arguments: argparse.Namespace) -> str:
    """The user's image, else registry:2 where it is or can be pulled, else one made from the distribution's package."""
    if arguments.image is not None:
        return str(arguments.image)
    own = "gradferry/registry:2"
    for known in ("registry:2", own):
        if _has(client, known):
            return known
    try:
        client.images.pull("registry", "2")
        return "registry:2"
    except (APIError, NotFound):
        _say("registry:2 cannot be pulled here: making one from the distribution's package")
    text = (Path(__file__).parent / "registry.Dockerfile").open("rb")
    with text:
        stream = client.api.build(fileobj=text, tag=own, buildargs={"BASE": arguments.base}, rm=True, decode=True)
        for line in stream:
            if "error" in line:
                _refuse(f"No registry: {line['error']}", "Name an image of one: -e trainer_image_registry_image=IMAGE")
    return own


def _has(client: docker.DockerClient, reference: str) -> bool:
    try:
        client.images.get(reference)
    except ImageNotFound:
        return False
    return True


def _push(client: docker.DockerClient, repository: str, tag: str) -> set[str]:
    """Short ids of the layers that the registry did not have."""
    new = set()
    for line in client.api.push(repository, tag, stream=True, decode=True):
        if "error" in line:
            _refuse(f"Push into the local registry failed: {line['error']}", "Is the disk full?")
        if line.get("status") == "Pushed":
            new.add(str(line["id"]))
            _say(f"layer {line['id']} pushed")
    return new


def _layers(port: int, repository: str, tag: str) -> dict[str, int]:
    """Digest -> compressed bytes of the layers and the configuration of what lies in the registry."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/{repository}/manifests/{tag}", headers={"Accept": MANIFEST}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        manifest = json.load(answer)
    return {part["digest"]: part["size"] for part in [*manifest["layers"], manifest["config"]]}


def _wait_until_it_answers(port: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=5):
                return
        except (OSError, urllib.error.URLError) as error:
            if time.monotonic() > deadline:
                _refuse(f"The local registry on port {port} does not answer: {error}", "See its container's log")
            time.sleep(0.05)  # nothing to wait on but the port itself


def _name(cluster: str) -> str:
    return f"gradferry-registry-{cluster}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", nargs="?", help="image to push, NAME:TAG")
    parser.add_argument("--cluster", required=True, help="the registry's container is named after it")
    parser.add_argument("--base", default="debian:bookworm-slim", help="made on it if none can be pulled")
    parser.add_argument("--image", help="image of a registry that listens on port 5000")
    parser.add_argument("--volume", default="gradferry-registry", help="where layers stay")
    parser.add_argument("--label", action="append", default=[], help="KEY=VALUE on the container (may be repeated)")
    parser.add_argument("--stop", action="store_true", help="remove the container")
    arguments = parser.parse_args()
    if not arguments.stop and not arguments.reference:
        parser.error("REFERENCE is missing")
    return arguments


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _refuse(what: str, cure: str) -> NoReturn:
    _say(f"{what}\n  {cure}")
    raise SystemExit(2)


if __name__ == "__main__":
    main()
