"""Meeting the other replicas: a store that we build ourselves, with a wait of its own, then the process group.

PyTorch's `init_process_group("env://")` has one timeout for the meeting and for every operation afterwards. A meeting
may take minutes (hosts boot one after the other), an exchange that takes that long has lost a peer.
"""

from __future__ import annotations

import time
from datetime import timedelta

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, Store

from trainer.errors import ComeBack
from trainer.sync.place import Place

_POLL_S = 0.2


def meet(place: Place, *, rendezvous_s: float, deadline_s: float, gpu: bool) -> None:
    """Form the default process group: gloo, and NCCL for CUDA tensors. Raises ComeBack when not all are there in time.

    `deadline_s` is what each operation of the group may take.
    """
    give_up = time.monotonic() + rendezvous_s
    try:
        store = _fresh_store(place, give_up)
        _wait_for_all(store, place, give_up)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if gpu else "gloo",
            store=PrefixStore("group", store),
            rank=place.rank,
            world_size=place.world,
            timeout=timedelta(seconds=deadline_s),
        )
        if place.rank == 0:
            store.set("formed", "1")
    except (RuntimeError, ValueError) as error:  # DistError is a RuntimeError; a client that cannot connect, too
        raise _not_met(place, rendezvous_s, error) from None


def _fresh_store(place: Place, give_up: float) -> Store:
    """The store on the master. One that an earlier group was formed with belongs to peers that are about to go."""
    while True:
        left = give_up - time.monotonic()
        if left <= 0:
            raise RuntimeError("the store of the group before is still there")
        store = dist.TCPStore(  # type: ignore[attr-defined]
            place.master,
            place.port,
            place.world,
            is_master=place.rank == 0 and not place.agent_store,
            timeout=timedelta(seconds=max(1.0, left)),
            wait_for_workers=False,
        )
        if place.agent_store or not store.check(["formed"]):
            return store
        del store
        time.sleep(_POLL_S)  # there is nothing to wait on: the old master's end shows only in a new connection


def _wait_for_all(store: Store, place: Place, give_up: float) -> None:
    store.set(f"here/{place.rank}", "1")
    everybody = [f"here/{rank}" for rank in range(place.world)]
    store.wait(everybody, timedelta(seconds=max(1.0, give_up - time.monotonic())))


def _not_met(place: Place, rendezvous_s: float, error: Exception) -> ComeBack:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:160]
    return ComeBack(
        f"rank {place.rank} of {place.world}: the replicas did not meet at {place.master}:{place.port} "
        f"within {rendezvous_s:.0f} s: {reason}",
        "Are all hosts up and their mesh addresses reachable? This one tries again",
    )


def part() -> None:
    """Leave the group, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()
