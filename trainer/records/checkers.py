"""The promises of a run, judged from what each rank wrote down. Pure; each has its own bad histories as tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainer.batching import Window, deal
from trainer.records import spans
from trainer.records.events import Checkpoint, Settings, Skipped, Span, Started, Step, WindowRead, read_digest
from trainer.records.history import Histories
from trainer.records.lineage import Executed, Incarnation, executed_by, incarnations_of, sessions_of, surviving
from trainer.records.verdict import Broken, Kept, Unknown, Verdict

SAME_ON_ALL = ("step", "epoch", "start", "stop", "weight", "loss", "lr", "global_batch", "scale", "witness")


@dataclass(frozen=True)
class EverySampleOnce:
    """Each position of each epoch entered the surviving parameters once: over all ranks, starts and world sizes.

    What counts is what each rank wrote that it really read. Where a rank's record is lost with its host, what it told
    the others in the exchange (`witness`) stands for it. A window that was skipped as not finite counts as read.
    samples: of one epoch; None takes it from the history.
    """

    samples: int | None = None

    def judge(self, histories: Histories) -> Verdict:
        lineage = surviving(histories)
        if not lineage.chain:
            return Unknown("no window in the history")
        samples = self.samples or _epoch_samples(histories)
        findings = [*_windows_follow(lineage.chain, samples), *_reads_fill(lineage.chain)]
        broken = next((finding for finding in findings if isinstance(finding, Broken)), None)
        if broken and not lineage.gaps:
            return broken
        if lineage.gaps:
            return Unknown(lineage.gaps[0])
        return findings[0] if findings else Kept(_epochs_text(lineage.chain, samples))


@dataclass(frozen=True)
class OneHistory:
    """The replicas tell the same of each window: position, weight, loss, rate; of settings; of each checkpoint."""

    def judge(self, histories: Histories) -> Verdict:
        incarnations = incarnations_of(sessions_of(histories.entries))
        compared, alone = 0, 0
        for incarnation in incarnations:
            for executed in executed_by(incarnation):
                if why := _differs(executed):
                    return Broken(why)
                compared += len(executed.by_rank) > 1 or executed.incarnation.world == 1
                alone += len(executed.by_rank) == 1 and executed.incarnation.world > 1
            if why := _settings_differ(incarnation) or _digests_differ(incarnation):
                return Broken(why)
        if not compared:
            return Unknown(f"{alone} windows, none of them told by two ranks" if alone else "no window in the history")
        return Kept(f"{compared} windows" + (f", {alone} more told by one rank only" if alone else ""))


@dataclass(frozen=True)
class StepsWithoutGap:
    """The surviving optimizer steps are numbered 1, 2, 3, …: none is missing, none counted twice."""

    def judge(self, histories: Histories) -> Verdict:
        lineage = surviving(histories)
        if lineage.gaps:
            return Unknown(lineage.gaps[0])
        numbers = [e.window.step for e in lineage.chain if isinstance(e.window, Step)]
        if not numbers:
            return Unknown("no step in the history")
        for expected, number in enumerate(numbers, 1):
            if number != expected:
                return Broken(f"step {expected} is missing: step {number} follows step {expected - 1}")
        return Kept(f"{len(numbers)} steps")


def _windows_follow(chain: tuple[Executed, ...], samples: int | None) -> Iterator[Verdict]:
    """Each window begins where the one before it ended; an epoch ends at its last sample."""
    epoch, position = 0, 0
    last = "the start"
    for executed in chain:
        window = executed.window
        name = f"step {window.step}"
        ended = position > 0 and samples in (None, position)
        if ended and (window.epoch, window.start) == (epoch + 1, 0):
            samples, epoch, position = position, window.epoch, 0
        if window.epoch != epoch:
            yield Broken(f"epoch {epoch} ends at position {position}{_of(samples)}: {name} is of epoch {window.epoch}")
            return
        if window.start > position:
            yield Broken(f"epoch {epoch}: positions {position}-{window.start} are in no step ({last}, then {name})")
            return
        if window.start < position:
            end = min(position, window.stop)
            yield Broken(f"epoch {epoch}: positions {window.start}-{end} are in {last} and in {name}")
            return
        if samples is not None and window.stop > samples:
            yield Broken(f"epoch {epoch}: {name} reaches position {window.stop}{_of(samples)}")
            return
        position, last = window.stop, name


def _reads_fill(chain: tuple[Executed, ...]) -> Iterator[Verdict]:
    """What the ranks read in a window is the window, each position once."""
    for executed in chain:
        window = executed.window
        where = f"epoch {window.epoch}, step {window.step}"
        whole = (window.start, window.stop)
        reads = [span for one in executed.by_rank.values() for span in one.read]
        outside = next((s for s in reads if s[0] < whole[0] or s[1] > whole[1]), None)
        if outside:
            yield Broken(f"{where}: positions {spans.text([outside])} were read, the window is {spans.text([whole])}")
        if double := spans.twice(reads):
            yield Broken(f"{where}: positions {spans.text([double])} were read twice")
        if why := _contradicts_witness(executed):
            yield Broken(f"{where}: {why}")
        absent = [rank for rank in range(executed.incarnation.world) if rank not in executed.by_rank]
        unread = spans.missing(reads, whole)
        if not absent and unread:
            yield Broken(f"{where}: positions {spans.text(unread)} were read by nobody")
        if absent and not _witnessed(executed, absent, unread):
            yield Unknown(f"{where}: no record of rank {absent[0]}, nor a witness of what it read")


def _contradicts_witness(executed: Executed) -> str:
    for teller, window in executed.by_rank.items():
        for rank, own in executed.by_rank.items():
            if rank < len(window.witness) and window.witness[rank] != read_digest(own.read):
                return f"rank {rank} wrote that it read {spans.text(own.read)}, but told rank {teller} otherwise"
    return ""


def _witnessed(executed: Executed, absent: list[int], unread: list[Span]) -> bool:
    """True where those present were told, by each absent rank, just the share of `unread` that it was dealt."""
    window = executed.window
    world = executed.incarnation.world
    if len(window.witness) != world:
        return False
    if len(absent) == 1:
        return window.witness[absent[0]] == read_digest(unread)
    if window.micro_batch is None:
        return False
    whole = Window(window.epoch, window.start, window.stop)
    shares = {r: [(s.start, s.stop) for s in deal(whole, window.micro_batch, world, r)] for r in absent}
    told = all(window.witness[rank] == read_digest(share) for rank, share in shares.items())
    return told and spans.merged(s for share in shares.values() for s in share) == spans.merged(unread)


def _differs(executed: Executed) -> str:
    first_rank = min(executed.by_rank)
    first = executed.by_rank[first_rank]
    for rank, other in executed.by_rank.items():
        if type(other) is not type(first):
            return f"step {first.step}: {first.name} on rank {first_rank}, {other.name} on rank {rank}"
        for field in SAME_ON_ALL:
            mine, theirs = getattr(first, field), getattr(other, field)
            if mine != theirs:
                return f"step {first.step}: {field} is {mine} on rank {first_rank}, {theirs} on rank {rank}"
    return ""


def _settings_differ(incarnation: Incarnation) -> str:
    """All ranks take up the same settings after the same step; one that was killed may not have come that far."""
    told: dict[int, list[tuple[int, str]]] = {}
    for rank, event in incarnation.events(Settings):
        assert isinstance(event, Settings)
        told.setdefault(rank, []).append((event.step, event.revision))
    longest = max(told.values(), key=len, default=[])
    for rank, own in told.items():
        if own != longest[: len(own)]:
            return f"settings on rank {rank}: {own}, elsewhere {longest}"
    for rank in incarnation.sessions:
        reached = max(
            (w.step for r, w in incarnation.events(WindowRead) if r == rank and isinstance(w, Step)), default=0
        )
        due = [one for one in longest if one[0] < reached]
        if len(told.get(rank, [])) < len(due):
            return f"rank {rank} made step {reached} without the settings {due[-1][1]} of step {due[-1][0]}"
    return ""


def _digests_differ(incarnation: Incarnation) -> str:
    seen: dict[int, tuple[int, str]] = {}
    for rank, event in incarnation.events(Checkpoint):
        assert isinstance(event, Checkpoint)
        other_rank, digest = seen.setdefault(event.step, (rank, event.digest))
        if digest != event.digest:
            return f"checkpoint {event.step}: {digest} on rank {other_rank}, {event.digest} on rank {rank}"
    return ""


def _epoch_samples(histories: Histories) -> int | None:
    started: Iterable[Started] = (e.event for e in histories.entries if isinstance(e.event, Started))
    return next((event.samples for event in started if event.samples), None)


def _epochs_text(chain: tuple[Executed, ...], samples: int | None) -> str:
    last = chain[-1].window
    whole = last.epoch + (last.stop == samples)
    rest = "" if last.stop == samples else f" and epoch {last.epoch} up to position {last.stop}"
    skipped = sum(isinstance(e.window, Skipped) for e in chain)
    note = f"; {skipped} windows were read and left out" if skipped else ""
    return f"{whole} whole epochs{_of(samples)} samples{rest}, {len(chain)} windows{note}"


def _of(samples: int | None) -> str:
    return f" of {samples}" if samples else ""
