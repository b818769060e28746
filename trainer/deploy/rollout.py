"""What is about to change on which host, and by which of four ways. Pure: facts in, decision and words out.

nothing   hosts are as inventory and run.yml describe them
live      only settings that may change while a run trains: run.json is replaced, the trainers take it up at one step
start     hosts that do not train are started; those that do go on, or wait for them
restart   all hosts stop with a checkpoint, change, and start together: something differs that cannot change live
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ValidationError

from trainer.config import Run, changes, is_live, revision
from trainer.deploy.hostfiles import ENVIRONMENT, UNIT

Way = Literal["nothing", "live", "start", "restart"]
FINISHED = ("finished", "stopped early")  # reasons of the history's `ended` event when a run is complete


@dataclass(frozen=True)
class Wanted:
    """A host as it should be. files: path -> text; hosts: as run.json lists them."""

    run: Run
    image: str
    files: Mapping[str, str]
    hosts: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Seen:
    """A host as it is (module trainer_facts)."""

    running: bool
    finished: bool
    fresh: bool
    image: str | None
    run: Mapping[str, Any] | None
    files: Mapping[str, str | None]
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Seen:
        unit, event = facts["unit"], facts["last_event"]
        running = unit["active"] in ("active", "activating", "reloading")
        ended = event.get("event") == "ended" and event.get("reason") in FINISHED
        return cls(
            running=running,
            finished=not running and ended,
            fresh=bool(facts["fresh"]),
            image=unit["image"],
            run=facts["run"],
            files=facts["files"],
            overrides=facts["overrides"],
        )


@dataclass(frozen=True)
class Difference:
    """One thing that changes. live: it can, without a restart."""

    text: str
    live: bool = False


@dataclass(frozen=True)
class Rollout:
    """The decision. write: hosts whose files differ. wait: hosts that are to be seen training before it is done."""

    way: Way
    revision: str
    lines: tuple[str, ...]
    stop: tuple[str, ...]
    write: tuple[str, ...]
    start: tuple[str, ...]
    wait: tuple[str, ...]


def rollout(wanted: Mapping[str, Wanted], seen: Mapping[str, Seen], *, given: Sequence[str] = ()) -> Rollout:
    """Decide for all hosts together. `given`: fields that came from the command line this time."""
    differences = {name: host_differences(wanted[name], seen[name], given) for name in wanted}
    idle = _idle(differences, seen)
    way = _way(differences, seen, idle)
    everyone = tuple(wanted)
    running = tuple(name for name in wanted if seen[name].running)
    start = {"restart": everyone, "start": idle}.get(way, ())
    return Rollout(
        way=way,
        revision=revision(next(iter(wanted.values())).run),
        lines=tuple(_lines(wanted, differences, idle, way)),
        stop=running if way == "restart" else (),
        write=tuple(name for name in wanted if _outdated(wanted[name], seen[name])),
        start=start,
        wait=everyone if start or not _all_train(seen) else (),
    )


def host_differences(wanted: Wanted, seen: Seen, given: Sequence[str] = ()) -> list[Difference]:
    """What changes on one host; empty where nothing does."""
    if seen.run is None:
        return [Difference(f"settings: none -> revision {revision(wanted.run)}"), *_image(wanted, seen)]
    found = [*_image(wanted, seen), *_settings(wanted, seen, given)]
    if seen.run.get("hosts") != list(wanted.hosts):
        found.append(Difference("hosts of the run"))
    others = [path for path in (UNIT, ENVIRONMENT) if _differs(wanted, seen, path)]
    if others and not any(not difference.live for difference in found):
        found.append(Difference(f"launch: {', '.join(path.rsplit('/', 1)[1] for path in others)}"))
    return found


def _image(wanted: Wanted, seen: Seen) -> list[Difference]:
    if wanted.image == seen.image:
        return []
    return [Difference(f"image: {_tag(seen.image)} -> {_tag(wanted.image)}")]


def _settings(wanted: Wanted, seen: Seen, given: Sequence[str]) -> list[Difference]:
    try:
        old = Run.model_validate((seen.run or {}).get("run"))
    except ValidationError:
        return [Difference("settings: written by another version")]
    found = []
    for name, (before, after) in changes(old, wanted.run).items():
        returns = name in seen.overrides and name not in given
        note = " (was given with -e, run.yml has this)" if returns else ""
        found.append(Difference(f"{name}: {_shown(before)} -> {_shown(after)}{note}", is_live(name)))
    return found


def _way(differences: Mapping[str, list[Difference]], seen: Mapping[str, Seen], idle: Sequence[str]) -> Way:
    running = [name for name in differences if seen[name].running]
    if any(not difference.live for name in running for difference in differences[name]):
        return "restart"
    if idle:
        # A peer that is up but waits would come back with the old settings beside a host that starts with the new ones.
        return "restart" if any(differences[name] for name in running) else "start"
    return "live" if any(differences[name] for name in running) else "nothing"


def _idle(differences: Mapping[str, list[Difference]], seen: Mapping[str, Seen]) -> tuple[str, ...]:
    """Hosts to start. None where the run is over: a bare host beside finished ones would wait for them in vain."""
    over = [name for name in differences if seen[name].finished and not differences[name]]
    if over and not any(host.running for host in seen.values()):
        return ()
    return tuple(name for name in differences if not seen[name].running and name not in over)


def _all_train(seen: Mapping[str, Seen]) -> bool:
    trains = any(host.running for host in seen.values())
    return not trains or all(host.finished or (host.running and host.fresh) for host in seen.values())


def _outdated(wanted: Wanted, seen: Seen) -> bool:
    return any(_differs(wanted, seen, path) for path in wanted.files)


def _differs(wanted: Wanted, seen: Seen, path: str) -> bool:
    return hashlib.sha256(wanted.files[path].encode()).hexdigest() != seen.files.get(path)


def _lines(
    wanted: Mapping[str, Wanted], differences: Mapping[str, list[Difference]], idle: Sequence[str], way: Way
) -> list[str]:
    """For a person: what changes, on which hosts, and by which way. Equal changes of several hosts are one line."""
    by_text: dict[str, list[str]] = {}
    for name in wanted:
        texts = [f"{d.text}   [{'live' if d.live and way == 'live' else way}]" for d in differences[name]]
        if name in idle:
            texts.append("trainer: start")
        for text in texts or ["nothing"]:
            by_text.setdefault(text, []).append(name)
    return [f"{_named(names, len(wanted))}: {text}" for text, names in by_text.items()]


def _named(names: Sequence[str], of: int) -> str:
    return "all hosts" if len(names) == of > 1 else ", ".join(names)


def explained(way: Way) -> str:
    """One sentence on what will happen."""
    return {
        "nothing": "Nothing to change.",
        "live": "LIVE: the trainers take it up at one step, without a restart.",
        "start": "START: hosts that do not train are started.",
        "restart": "RESTART: all hosts stop with a checkpoint and go on from it.",
    }[way]


def _tag(image: str | None) -> str:
    return image.rsplit("/", 1)[-1] if image else "none"


def _shown(value: object) -> str:
    return "none" if value is None else str(value)
