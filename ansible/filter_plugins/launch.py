"""Small words between the roles of the trainer and its pure core: lists for file_set, sentences about several hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.deploy.receipt import newest_checkpoint as newest

JOURNAL_LINES = 6
SYSTEMD_LINES = ("Start", "Stopp", "gradferry-trainer.service:", "Error: No such container")  # nothing about the cause


def file_list(files: Mapping[str, str]) -> list[dict[str, str]]:
    """Path -> text, as file_set takes it."""
    return [{"dest": path, "content": text, "mode": "0644"} for path, text in files.items()]


def owned_folder(name: str, parent: str, owner: int) -> dict[str, str]:
    """A folder of the trainer, as file_set takes it."""
    return {"dest": f"{parent}/{name}", "state": "directory", "mode": "0755", "owner": str(owner), "group": str(owner)}


def refusals(hosts: Sequence[str], variables: Mapping[str, Any]) -> list[str]:
    """One sentence for each host whose trainer refused new settings or did not answer."""
    found = []
    for host in hosts:
        answer = variables[host]["trainer_service_answer"]
        if not answer.get("reached"):
            found.append(f"{host}: {answer.get('why')}")
        elif not answer["ack"]["accepted"]:
            found.append(f"{host}: refused at step {answer['ack'].get('step')}: {answer['ack'].get('reason')}")
    return found


def idle_reasons(hosts: Sequence[str], variables: Mapping[str, Any]) -> list[str]:
    """For hosts that make no steps: why, and the end of their journal; hosts with the same story are told together."""
    stories: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        seen = variables[host]["trainer_service_seen"]
        if not seen.get("reached"):
            lines = [line for line in seen.get("journal", []) if not line.startswith(SYSTEMD_LINES)]
            stories.setdefault((str(seen.get("why")), *lines[-JOURNAL_LINES:]), []).append(host)
    found = []
    for (why, *lines), names in stories.items():
        found += [f"{', '.join(names)}: {why}. The journal says:", *(f"  {line}" for line in dict.fromkeys(lines))]
    return found


def training_lines(hosts: Sequence[str], variables: Mapping[str, Any]) -> list[str]:
    """One line a host: where it stands."""
    return [f"{host}: {_stands(variables[host]['trainer_service_seen']['status'])}" for host in hosts]


def _stands(status: Mapping[str, Any]) -> str:
    loss = status.get("loss")
    shown = "" if loss is None else f", loss {loss:.4g}"
    return f"{status.get('state')}, step {status.get('step')}{shown}, global batch {status.get('global_batch')}"


def newest_checkpoint(hosts: Sequence[str], variables: Mapping[str, Any]) -> dict[str, Any]:
    """The newest whole checkpoint of all hosts, with the host to take it from; empty where there is none."""
    found = newest({host: variables[host]["ansible_facts"]["gradferry_trainer"] for host in hosts})
    return {"host": found[0], **found[1]} if found else {}


def reduce_files(parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The files of all hosts as one table."""
    return {path: digest for part in parts for path, digest in part.items()}


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "file_list": file_list,
            "owned_folder": owned_folder,
            "refusals": refusals,
            "idle_reasons": idle_reasons,
            "training_lines": training_lines,
            "newest_checkpoint": newest_checkpoint,
            "reduce_files": reduce_files,
        }
