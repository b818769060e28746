"""Render every host's files and decide what changes: trainer.deploy with Ansible's variables.

Runs once for all hosts, on the control node only. Facts of the hosts are those of the module trainer_facts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from trainer.config import Run
from trainer.deploy.container import Engine
from trainer.deploy.hostfiles import OVERRIDES, SETTINGS, Service, host_files
from trainer.deploy.rollout import Seen, Wanted, explained, rollout
from trainer.errors import ConfigError, GradferryError, HostError
from trainer.launch import Host, launches


class ActionModule(ActionBase):
    """Returns `rollout` (see trainer.deploy.rollout.Rollout), `files` and `previous`: host -> path -> text."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"settings", "image", "hosts", "mesh", "service", "templates"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = self._task.args
        about = (task_vars or {})["hostvars"]
        names: Sequence[str] = [str(name) for name in arguments["hosts"]]
        try:
            decided = _decide(names, {name: about[name] for name in arguments["mesh"]}, arguments)
        except GradferryError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, **decided}


def _decide(names: Sequence[str], about: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    settings = arguments["settings"]
    run = Run.model_validate_json(json.dumps(settings["run"]))
    hosts = [_host(name, arguments["mesh"][name], about[name]) for name in arguments["mesh"]]
    plan = launches(run, hosts)
    facts = {name: about[name]["ansible_facts"]["gradferry_trainer"] for name in names}
    wanted = {}
    for name in names:
        image = arguments.get("image") or facts[name]["unit"]["image"]
        if not image:
            raise HostError(f"{name}: no trainer was launched here", "Run site.yml first")
        files = host_files(
            run,
            hosts,
            plan[name],
            Engine(facts[name]["docker"]["cdi"], facts[name]["docker"]["runtimes"]),
            image=image,
            service=Service(**arguments["service"]),
            overrides=settings["overrides"],
            templates=Path(arguments["templates"]),
        )
        wanted[name] = Wanted(run, image, files, json.loads(files[SETTINGS])["hosts"])
    decision = rollout(wanted, {name: Seen.of(facts[name]) for name in names}, given=list(settings["overrides"]))
    if decision.way in ("live", "restart") and len(names) < len(hosts):
        left = sorted({host.name for host in hosts} - set(names))
        raise ConfigError(
            f"--limit leaves {', '.join(left)} out, but this change must reach all hosts of the run together",
            "Leave --limit away, or wait until those hosts can be reached",
        )
    title = explained(decision.way)
    return {
        "rollout": asdict(decision),
        "files": {name: dict(wanted[name].files) for name in names},
        "previous": {name: _previous(facts[name]) for name in names},
        "batch": next(iter(plan.values())).batch,
        "said": [title, *decision.lines],
    }


def _previous(facts: Mapping[str, Any]) -> dict[str, str]:
    """The settings that a host has now, as text, to put them back."""
    document = json.dumps(facts["run"], indent=2, sort_keys=True) + "\n"
    return {OVERRIDES: json.dumps(facts["overrides"], sort_keys=True) + "\n", SETTINGS: document}


def _host(name: str, mesh: Mapping[str, Any], about: Mapping[str, Any]) -> Host:
    """A host of the run: the inventory first, then what was found on it."""
    facts = (about.get("ansible_facts") or {}).get("gradferry_trainer") or {}
    gpus = int(facts.get("gpus") or 0)
    visible = about.get("cuda_visible_devices")
    chosen = [
        str(part).strip() for part in (visible if isinstance(visible, (list, tuple)) else str(visible).split(","))
    ]
    chosen = chosen if visible not in (None, "") else []
    return Host(
        name=name,
        region=str(mesh["region"]),
        mesh_address=str(mesh["address"]),
        devices=int(about.get("devices") or len(chosen) or gpus or 1),
        gpus=gpus > 0,
        cuda_visible_devices=",".join(chosen) or None,
    )
