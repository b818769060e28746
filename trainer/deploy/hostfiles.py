"""The files of a host that start its trainer, as text. What they say is decided in launch.py and container.py."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from trainer.config import Run
from trainer.deploy.container import Engine, docker_arguments
from trainer.launch import CONFIG_FOLDER, Host, Launch, run_json

UNIT = "/etc/systemd/system/gradferry-trainer.service"
ENVIRONMENT = f"{CONFIG_FOLDER}/trainer.env"
SETTINGS = f"{CONFIG_FOLDER}/run.json"
OVERRIDES = f"{CONFIG_FOLDER}/overrides.json"
STOP_MARGIN_S = 30  # between the end of docker's patience and that of systemd


@dataclass(frozen=True)
class Service:
    """How the unit behaves. drain_s: time from SIGTERM to SIGKILL, for a window and a checkpoint."""

    mesh_unit: str = "wg-quick@gf0.service"
    drain_s: int = 120
    restart_s: int = 2


def host_files(
    run: Run,
    hosts: Sequence[Host],
    launch: Launch,
    engine: Engine,
    *,
    image: str,
    service: Service,
    overrides: Mapping[str, object],
    templates: Path,
) -> dict[str, str]:
    """Path -> text. run.json comes last: a running trainer that sees it changed finds the others in place."""
    values = {
        "host": launch.host.name,
        "run": run.name,
        "image": image,
        "argv": launch.argv,
        "environment": sorted(launch.environment.items()),
        "docker_arguments": docker_arguments(launch.host, engine, run.limits, service.drain_s),
        "mesh_unit": service.mesh_unit,
        "drain_s": service.drain_s,
        "stop_timeout_s": service.drain_s + STOP_MARGIN_S,
        "restart_s": service.restart_s,
    }
    return {
        UNIT: rendered(templates / "trainer_service", "gradferry-trainer.service.j2", values),
        ENVIRONMENT: rendered(templates / "trainer_service", "trainer.env.j2", values),
        OVERRIDES: json.dumps(dict(overrides), sort_keys=True) + "\n",
        SETTINGS: run_json(run, hosts),
    }


def rendered(folder: Path, name: str, values: Mapping[str, object]) -> str:
    """A template's text; a name that it does not know is an error."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # units and environment files, not HTML
    )
    return environment.get_template(name).render(values)
