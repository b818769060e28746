"""Where a run starts: anew, or from the newest checkpoint that any host has. All ranks come to the same answer."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer.checkpoint.state import Snapshot, TrainState, fingerprint, model_tensors, optimizer_kind, restore
from trainer.checkpoint.store import CheckpointStore, Stored, load_snapshot, load_values
from trainer.checkpoint.transfer import Choice, choose, hand_out
from trainer.config import Run, fields, is_live
from trainer.data.course import Progress
from trainer.errors import CheckpointError, ComeBack
from trainer.records import events
from trainer.sync.exchange import Exchange


@dataclass(frozen=True)
class Agreement:
    """What all ranks start with. run: rank 0's; others may hold newer live settings, which come as candidates."""

    run: Run
    incarnation: str


def agree(run: Run, state: TrainState, exchange: Exchange, hosts: str) -> Agreement:
    """Compare what must be the same everywhere. Raises ComeBack where a redeploy has not reached all hosts yet."""
    mine = {
        "fixed": _fixed(run),
        "model": fingerprint(state.model),
        "weights": _weights_digest(state),
        "run": run.model_dump(mode="json"),
        "incarnation": secrets.token_hex(6),
        "host": hosts,
    }
    offers: list[dict[str, Any]] = [json.loads(text) for text in exchange.gather(json.dumps(mine).encode())]
    first = offers[0]
    for other in offers[1:]:
        if differing := sorted(n for n in first["fixed"] if first["fixed"][n] != other["fixed"].get(n)):
            raise ComeBack(
                f"{differing[0]} differs between {first['host']} and {other['host']}: the run is being redeployed",
                "It starts again until all hosts have the same run.json; else run site.yml",
            )
        if first["model"] != other["model"]:
            raise ComeBack(
                f"model.factory builds different models on {first['host']} and {other['host']}",
                "Are all hosts on the same image? Run site.yml",
            )
    if any(other["weights"] != first["weights"] for other in offers):
        _share_weights(state, exchange)
    return Agreement(Run.model_validate(first["run"]), first["incarnation"])


def start_or_resume(
    state: TrainState,
    store: CheckpointStore,
    exchange: Exchange,
    *,
    writes: bool,
    epoch_samples: int,
    tell: Callable[[events.Event], None],
    note: Callable[[str], None],
    beat: Callable[[], None],
) -> None:
    """Bring `state` (new, with the agreed run in force) to the newest step that any rank has, if any has one.

    Raises CheckpointError where there are checkpoints, but not a whole one.
    """
    newest, damage = _newest(store, note)
    choice = choose(newest, exchange)
    if choice is None:
        _refuse_damage(damage, exchange)
        return
    stored, source = hand_out(choice, store, exchange, writes=writes, beat=beat)
    desired = state.inforce.run
    snapshot = load_snapshot(stored)
    check_same_run(desired, state.data, snapshot)
    restore(state, snapshot, exchange.rank)
    if (before := optimizer_kind(snapshot)) != (kind := desired.optimizer.kind):
        note(f"optimizer.kind was {before}, is now {kind}: its moments begin anew")
    if writes:
        store.drop_after(choice.step)
    merged = keep_live_settings(desired, state.inforce.run)
    state.inforce = state.inforce.changed(merged, exchange.world, epoch_samples, state.progress)
    state.lineage = (*state.lineage, _ancestor(choice, snapshot.values))
    place = str(stored.folder) if source == exchange.rank else f"rank {source}"
    tell(
        events.Resumed(
            step=state.progress.step,
            source=place,
            lineage=snapshot.values["incarnation"],
            epoch=state.progress.epoch,
            position=state.progress.position,
        )
    )


def check_same_run(run: Run, data: str, snapshot: Snapshot) -> None:
    """Refuse a checkpoint of another run: its position means nothing in another order or in other data."""
    before, data_before = snapshot.values["in_force"]["run"], snapshot.values.get("data") or data
    pairs = {
        "name": (before["name"], run.name),
        "seed": (before["seed"], run.seed),
        "data": (data_before, data or data_before),
    }
    for field, (was, now) in pairs.items():
        if was != now:
            raise CheckpointError(
                f"checkpoint of step {snapshot.step} is of another run: {field} was {was}, is now {now}",
                f"Set {field} back to {was}, or use another state folder",
            )


def keep_live_settings(desired: Run, in_force: Run) -> Run:
    """`desired` with the live settings that were agreed on before; newer ones are taken up by all at one step."""
    values = desired.model_dump(mode="json")
    for name, value in fields(in_force).items():
        if is_live(name):
            section, _, field = name.partition(".")
            if field:
                values[section][field] = value
            else:
                values[section] = value
    return Run.model_validate(values)


def already_finished(store: CheckpointStore, run: Run) -> int | None:
    """The step at which this run ended, where the newest checkpoint here says so; needs no other host."""
    stored = store.newest()
    if stored is None:
        return None
    try:
        values = load_values(stored)
        progress, before = Progress(**values["progress"]), Run.model_validate(values["in_force"]["run"])
        ended = bool(values["ended"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if (run.name, run.seed, run.model) != (before.name, before.seed, before.model):
        return None
    longer = run.epochs > before.epochs or (run.max_steps or 1 << 62) > (before.max_steps or 1 << 62)
    return progress.step if ended and not longer else None


def _newest(store: CheckpointStore, note: Callable[[str], None]) -> tuple[Stored | None, str]:
    """The newest whole checkpoint here; where there is none, what became of those that are there."""
    damage = ""
    for found in store.verified():
        if isinstance(found, Stored):
            return found, ""
        note(f"left out: {found}")
        damage = damage or f"none of the checkpoints in {store.folder} is whole: {found.what}"
    return None, damage


def _refuse_damage(mine: str, exchange: Exchange) -> None:
    """Where no rank has a whole checkpoint but one has damaged ones, all stop: a new run would be written over them."""
    damages = [text.decode() for text in exchange.gather(mine.encode())]
    if damage := mine or next(filter(None, damages), ""):
        raise CheckpointError(damage, "Restore one, or start anew with an empty state folder")


def _ancestor(choice: Choice, values: dict[str, Any]) -> dict[str, Any]:
    return {"step": choice.step, "digest": choice.manifest.digest[:12], "incarnation": values["incarnation"]}


def _fixed(run: Run) -> dict[str, object]:
    return {name: value for name, value in fields(run).items() if not is_live(name)}


def _weights_digest(state: TrainState) -> str:
    digest = hashlib.sha256()
    for tensor in model_tensors(state.model).values():
        digest.update(tensor.detach().cpu().contiguous().view(-1).numpy().tobytes())
    return digest.hexdigest()


def _share_weights(state: TrainState, exchange: Exchange) -> None:
    """Give all ranks the initial weights of rank 0: their generators do not agree (other device, other version)."""
    import torch

    for tensor in model_tensors(state.model).values():
        flat = tensor.detach().cpu().contiguous().view(-1)
        data = torch.frombuffer(bytearray(flat.numpy().tobytes()), dtype=torch.uint8)
        for other in range(1, exchange.world):
            if exchange.rank == 0:
                exchange.send(data, other)
            elif exchange.rank == other:
                exchange.receive(data, 0)
        if exchange.rank:
            received = torch.frombuffer(bytearray(data.numpy().tobytes()), dtype=tensor.dtype)
            with torch.no_grad():
                tensor.copy_(received.view(tensor.shape))
