"""Legs run by threads of one process, or by as many processes as there are replicas."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist

from tests.contracts.adapter.legs import Leg
from tests.contracts.adapter.replica import ReplicaOfCase, Seen, Variant
from trainer.sync.ddp import DdpExchange
from trainer.sync.inprocess import Meeting
from trainer.sync.solo import SoloExchange

Mode = Literal["threads", "processes"]
DEADLINE_S = 30.0


def run_leg(given: Mapping[str, Any], leg: Leg, folder: Path, variant: Variant, mode: Mode) -> list[Seen]:
    """What each replica saw. Raises what the first of them raised."""
    run = {"threads": _in_threads, "processes": _in_processes}[mode]
    results = run(given, leg, folder, variant)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if isinstance(result, Seen)]


def _in_threads(given: Mapping[str, Any], leg: Leg, folder: Path, variant: Variant) -> list[Seen | BaseException]:
    results: list[Seen | BaseException] = [RuntimeError("did not run")] * leg.world
    meeting = Meeting(leg.world, DEADLINE_S)

    def replica(rank: int) -> None:
        try:
            one = ReplicaOfCase(given, leg, rank, folder, variant)
            exchange = SoloExchange() if leg.world == 1 else meeting.seat(rank, one.layout)
            results[rank] = one.conduct(exchange)
        except BaseException as error:
            results[rank] = error
            meeting.leave()

    _all_at_once([lambda rank=rank: replica(rank) for rank in range(leg.world)])
    return results


def _all_at_once(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _in_processes(given: Mapping[str, Any], leg: Leg, folder: Path, variant: Variant) -> list[Seen | BaseException]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch._dynamo"])  # imported once (an optimizer's step needs both)
    results: list[Seen | BaseException] = []
    meeting_place = folder / f"store-{len(list(folder.glob('store-*')))}"
    ends = []
    for rank in range(leg.world):
        ours, theirs = context.Pipe()
        arguments = (given, leg, rank, folder, variant, meeting_place, theirs)
        process = context.Process(target=_replica_process, args=arguments, daemon=True)
        process.start()
        theirs.close()
        ends.append((process, ours))
    for process, ours in ends:
        try:
            results.append(ours.recv() if ours.poll(2 * DEADLINE_S) else TimeoutError("a replica said nothing"))
        except EOFError as error:
            results.append(error)
        process.join(DEADLINE_S)
    return results


def _replica_process(
    given: Mapping[str, Any], leg: Leg, rank: int, folder: Path, variant: Variant, meeting_place: Path, end: Any
) -> None:
    torch.set_num_threads(1)
    try:
        one = ReplicaOfCase(given, leg, rank, folder, variant)
        if leg.world == 1:
            end.send(one.conduct(SoloExchange()))
            return
        store = dist.FileStore(str(meeting_place), leg.world)
        dist.init_process_group(
            "gloo", store=store, rank=rank, world_size=leg.world, timeout=timedelta(seconds=DEADLINE_S)
        )
        end.send(one.conduct(DdpExchange(one.layout, f"replica {rank}")))
        dist.destroy_process_group()
    except BaseException as error:
        end.send(RuntimeError(f"replica {rank}: {type(error).__name__}: {error}"))
