"""The receipt of a host that was handed back, and what a teardown has still to do: reads and writes it, nothing else.

A teardown is a row of steps, each noted with its time when it is done: stopped, flushed, pulled, verified, wiped,
released. One that was interrupted goes on where it was; nothing is wiped before what it holds was pulled and verified.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from trainer.errors import HostError

STEPS = ("stopped", "flushed", "pulled", "verified", "wiped", "released")


@dataclass(frozen=True)
class Receipt:
    """steps: name -> {"at": UTC time, ...what was seen}. folder: where its files were pulled to. gone: the host could
    not be reached, so it was not wiped."""

    cluster: str
    host: str
    began: str
    folder: str
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gone: Mapping[str, Any] | None = None

    @property
    def complete(self) -> bool:
        return all(step in self.steps for step in STEPS)

    def noted(self, step: str, at: str, seen: Mapping[str, Any]) -> Receipt:
        """With `step` done. A host that answers again is not gone."""
        return replace(self, steps={**self.steps, step: {"at": at, **seen}}, gone=None)

    def without_answer(self, at: str, reason: str) -> Receipt:
        return replace(self, gone={"at": at, "reason": reason})


def read_receipt(path: Path) -> Receipt | None:
    """None where there is none. Raises HostError where it is damaged."""
    try:
        return Receipt(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise HostError(f"{path}: not a receipt ({error})", "Move it away and run again") from None


def write_receipt(path: Path, receipt: Receipt) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(receipt), indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def holds_something(facts: Mapping[str, Any]) -> bool:
    """True where a host (module trainer_facts) has a trainer or what one leaves behind."""
    unit = facts["unit"]["load"] == "loaded"
    return bool(unit or facts["run"] or facts["checkpoints"] or facts["histories"] or facts["data"])


def receipt_for(
    cluster: str, host: str, old: Receipt | None, facts: Mapping[str, Any] | None, fresh: Receipt
) -> Receipt:
    """The receipt to go on with: an unfinished one of this cluster, a finished one of a host that is still empty, else
    `fresh`. `facts`: None where the host does not answer."""
    if old is None or old.cluster != cluster:
        return fresh
    if old.complete and facts is not None and holds_something(facts):
        return fresh  # the host was set up again since
    return old


def receipts_for(
    cluster: str, old: Mapping[str, Receipt | None], facts: Mapping[str, Mapping[str, Any] | None], fresh: Receipt
) -> dict[str, Receipt]:
    """`receipt_for` each host. Where one was set up again since its teardown, all that answer begin anew: what another
    had left unfinished then is of an older run. `fresh`: its host is filled in."""
    found, again = {}, False
    for host, receipt in old.items():
        found[host] = receipt_for(cluster, host, receipt, facts[host], replace(fresh, host=host))
        again |= receipt is not None and receipt.cluster == cluster and receipt.complete and not found[host].complete
    for host, receipt in found.items():
        if again and facts[host] is not None and not receipt.complete:
            found[host] = replace(fresh, host=host)
    return found


def one_folder(receipts: Mapping[str, Receipt], answering: Sequence[str], folder: str) -> str:
    """Where all hosts' files come together: that of an unfinished teardown, that of a finished one which is only
    repeated, else `folder`. Never that of an older run: its checkpoint may be of a higher step."""
    asked = [receipts[host] for host in answering]
    begun = [receipt.folder for receipt in asked if not receipt.complete and receipt.folder != folder]
    if begun:
        return begun[0]
    return asked[0].folder if asked and all(receipt.complete for receipt in asked) else folder


def newest_checkpoint(seen: Mapping[str, Mapping[str, Any]]) -> tuple[str, Mapping[str, Any]] | None:
    """(host, checkpoint) of the highest step that any host has whole; the first host where several have it."""
    best: tuple[str, Mapping[str, Any]] | None = None
    for host, facts in seen.items():
        for found in facts["checkpoints"][:1]:
            if best is None or found["step"] > best[1]["step"]:
                best = (host, found)
    return best


def cluster_of(seen: Mapping[str, Mapping[str, Any]], named: str) -> str:
    """Name of the run on the hosts; `named` (run.yml's) where they have none. Raises HostError where they disagree."""
    found = {host: facts["run"]["run"]["name"] for host, facts in seen.items() if facts["run"]}
    for host, name in found.items():
        if name != named:
            raise HostError(
                f"{host}: holds the run {name}, run.yml names {named}",
                "Give the inventory and the run.yml that belong together (-i INVENTORY -e run_file=FILE)",
            )
    return named
