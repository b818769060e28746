"""Open the receipts of a teardown: which cluster it is, who answers, what each host has still to do, where files go.

Runs once for all hosts, on the control node only. Writes nothing but receipts, and those only when confirmed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from trainer.deploy.receipt import Receipt, cluster_of, one_folder, read_receipt, receipts_for, write_receipt
from trainer.errors import ConfigError, GradferryError

UTC = "%Y-%m-%dT%H:%M:%SZ"


class ActionModule(ActionBase):
    """Returns `cluster`, `folder`, `answering`, `silent` (hosts) and `done` (host -> steps that its receipt has)."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _VALID_ARGS = frozenset({"hosts", "name", "confirm", "receipts", "artifacts", "folder"})

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        try:
            return {**result, "changed": False, **self._open((task_vars or {})["hostvars"])}
        except GradferryError as error:
            return {**result, "failed": True, "msg": str(error)}

    def _open(self, about: Mapping[str, Any]) -> dict[str, Any]:
        arguments = self._task.args
        hosts = [str(host) for host in arguments["hosts"]]
        facts = {host: (about[host].get("ansible_facts") or {}).get("gradferry_trainer") for host in hosts}
        answering = [host for host in hosts if facts[host]]
        cluster = cluster_of({host: facts[host] for host in answering}, arguments["name"])
        _confirmed(cluster, arguments.get("confirm"))
        began = time.gmtime()
        folder = arguments.get("folder") or str(
            Path(arguments["artifacts"]) / cluster / time.strftime("%Y%m%d-%H%M%S", began)
        )
        receipts = Path(arguments["receipts"])
        old = {host: read_receipt(receipts / f"{host}.json") for host in hosts}
        fresh = Receipt(cluster, "", time.strftime(UTC, began), folder)
        opened = receipts_for(cluster, old, facts, fresh)
        for host in hosts:
            if host not in answering and not opened[host].complete:
                reason = "does not answer: not wiped"
                opened[host] = opened[host].without_answer(time.strftime(UTC, began), reason)
        folder = one_folder(opened, answering, folder)
        for host in answering:
            if not opened[host].complete:  # so that one that is interrupted again finds it whichever host comes first
                opened[host] = replace(opened[host], folder=folder)
        if not self._task.check_mode:
            for host, receipt in opened.items():
                write_receipt(receipts / f"{host}.json", receipt)
        return {
            "cluster": cluster,
            "folder": folder,
            "answering": answering,
            "silent": [host for host in hosts if host not in answering],
            "done": {host: list(receipt.steps) for host, receipt in opened.items()},
        }


def _confirmed(cluster: str, confirm: Any) -> None:
    if str(confirm or "") != cluster:
        seen = f"confirm = {confirm}" if confirm else "not confirmed"
        raise ConfigError(
            f"teardown of {cluster}: {seen}; nothing was changed",
            f"Type the name when you are asked, or give -e confirm={cluster}",
        )
