"""What a host's trainer is and has: unit, settings, status, checkpoints, data, images. Reads only."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import time
from typing import Any

from ansible.module_utils.hostcard import engine
from ansible.module_utils.hostcard.command import output_of, text_of

CONFIG = "/etc/gradferry"
STATE = "/var/lib/gradferry"
UNIT = "gradferry-trainer.service"
UNIT_FILE = f"/etc/systemd/system/{UNIT}"
LABEL = "io.gradferry.content"
VERIFIED = ".verified"  # in a data folder: the sha256 of the index.json whose files were checked here
UNIT_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "Result",
    "ExecMainStatus",
    "NRestarts",
    "Environment",
    "NeedDaemonReload",
)
STATUS_FRESH_S = 30.0


def parsed(path: str) -> Any:
    """Content of a JSON file; None where there is none or it is damaged."""
    try:
        return json.loads(text_of(path) or "null")
    except ValueError:
        return None


def sha256_of(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def unit() -> dict[str, Any]:
    """systemd's view of the trainer's unit. `image`: what the installed unit starts."""
    shown = output_of(["systemctl", "show", f"--property={','.join(UNIT_PROPERTIES)}", UNIT]) or ""
    fields = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    environment = dict(part.split("=", 1) for part in fields.get("Environment", "").split() if "=" in part)
    return {
        "load": fields.get("LoadState", "not-found"),
        "active": fields.get("ActiveState", "inactive"),
        "sub": fields.get("SubState", "dead"),
        "enabled": fields.get("UnitFileState", ""),
        "result": fields.get("Result", ""),
        "exit": int(fields.get("ExecMainStatus") or 0),
        "restarts": int(fields.get("NRestarts") or 0),
        "reload": fields.get("NeedDaemonReload") == "yes",
        "image": environment.get("GRADFERRY_IMAGE"),
    }


def status() -> list[dict[str, Any]]:
    """Status of each rank of this host, by rank."""
    found = [parsed(path) for path in glob.glob(f"{STATE}/status/*.json")]
    return sorted((entry for entry in found if isinstance(entry, dict)), key=lambda entry: int(entry.get("rank", 0)))


def last_event(host: str) -> dict[str, Any]:
    """The newest event of this host's first rank, from the end of its history."""
    paths = sorted(glob.glob(f"{STATE}/history/{glob.escape(host)}-*.jsonl"))
    if not paths:
        return {}
    with open(paths[0], "rb") as stream:
        stream.seek(max(0, os.path.getsize(paths[0]) - 65536))
        lines = stream.read().splitlines()
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue  # a line that a crash cut short
        if isinstance(event, dict):
            return event
    return {}


def checkpoints() -> list[dict[str, Any]]:
    """Complete checkpoints, newest first: name, step, digest of the manifest, bytes."""
    found = []
    for folder in sorted(glob.glob(f"{STATE}/checkpoints/step-*"), reverse=True):
        manifest = parsed(f"{folder}/manifest.json")
        if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict):
            size = sum(int(entry["bytes"]) for entry in manifest["files"].values())
            entry = {"name": os.path.basename(folder), "step": manifest["step"], "bytes": size}
            found.append({**entry, "digest": sha256_of(f"{folder}/manifest.json")})
    return found


def data() -> dict[str, str]:
    """Name of a data folder -> sha256 of its index, of those whose files were verified here and are still that long."""
    found = {}
    for index in glob.glob(f"{STATE}/data/*/index.json"):
        folder = os.path.dirname(index)
        digest = sha256_of(index)
        if digest and text_of(f"{folder}/{VERIFIED}") == digest:
            found[os.path.basename(folder)] = digest
    return found


def images(answer: Any) -> dict[str, list[str]]:
    """Content label -> references of our images that the engine holds."""
    found: dict[str, list[str]] = {}
    for image in answer or []:
        content = (image.get("Labels") or {}).get(LABEL)
        if content:
            found.setdefault(content, []).extend(image.get("RepoTags") or [])
    return found


def docker() -> dict[str, Any]:
    """The engine, as far as starting a trainer depends on it."""
    info = engine.ask("/info") or {}
    listed = (engine.ask("/images/json") if info else None) or []
    return {
        "version": info.get("ServerVersion"),
        "cdi": bool(info.get("CDISpecDirs")),
        "runtimes": sorted(info.get("Runtimes") or {}),
        "images": images(listed),
        "references": [tag for image in listed for tag in image.get("RepoTags") or []],
    }


def gpus() -> int:
    """GPUs that the driver drives."""
    return len(glob.glob("/proc/driver/nvidia/gpus/*"))


def read(host: str) -> dict[str, Any]:
    """Everything about `host`'s trainer that launch, redeploy, status and teardown ask; nothing secret."""
    ranks = status()
    document = parsed(f"{CONFIG}/run.json")
    files = {path: sha256_of(path) for path in (f"{CONFIG}/run.json", f"{CONFIG}/trainer.env", UNIT_FILE)}
    now = time.time()
    return {
        "name": host,
        "clock_s": now,
        "gpus": gpus(),
        "docker": docker(),
        "unit": unit(),
        "files": files,
        "run": document if isinstance(document, dict) else None,
        "overrides": parsed(f"{CONFIG}/overrides.json") or {},
        "status": ranks,
        "fresh": bool(ranks) and all(now - float(rank.get("t", 0)) < STATUS_FRESH_S for rank in ranks),
        "last_event": last_event(host),
        "checkpoints": checkpoints(),
        "data": data(),
        "histories": sorted(os.path.basename(path) for path in glob.glob(f"{STATE}/history/*.jsonl")),
    }
