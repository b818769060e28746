"""Whether a peer is away, by the history of its own link: median + k·MAD, with hysteresis, or what the user allows.

Silence and slowness are judged alike: a peer that is alive but late is away too, and goes on by itself. Being wrong
costs time, never agreement: the commit rule trusts no detector. Pure; times are seconds of any steady clock.
Source: Hampel's identifier (median and median absolute deviation), which a few outliers cannot move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median


@dataclass(frozen=True)
class AwayPolicy:
    """`latency_s`: the user's away.latency_ms; None: auto, from the link's history."""

    latency_s: float | None = None
    beat_s: float = 0.25  # one heartbeat every so often
    k: float = 6.0  # deviations that are still normal
    floor_s: float = 0.15  # least allowance over the median: schedulers and garbage collectors take that much
    ceiling_s: float = 3.0  # most allowance over the median, however wild the link
    memory: int = 120  # round trips that are remembered, 30 s
    late_in_a_row: int = 3  # one late beat is noise
    good_in_a_row: int = 4  # hysteresis: so many good ones before it counts as present again
    relearn: int = 60  # late but steady for so many beats: that is what the link is like now


@dataclass(frozen=True)
class Link:
    """One peer as heard from here. `usual` are round trips while it was present, `recent` those since it was not."""

    since_s: float  # when it began to be listened to
    heard_s: float | None = None
    usual: tuple[float, ...] = ()
    recent: tuple[float, ...] = ()
    late: int = 0
    good: int = 0
    away: bool = True  # a stranger has to show that it can be heard


@dataclass(frozen=True)
class Present:
    """Heard in time."""


@dataclass(frozen=True)
class Away:
    """`reason`: one clause for a person, with what was seen and what is allowed."""

    reason: str


def limit_s(link: Link, policy: AwayPolicy) -> float:
    """The longest round trip that is still normal on this link."""
    if policy.latency_s is not None:
        return policy.latency_s
    if not link.usual:
        return policy.ceiling_s
    middle = median(link.usual)
    spread = median(abs(x - middle) for x in link.usual)
    return middle + min(policy.ceiling_s, max(policy.floor_s, policy.k * spread))


def heard(link: Link, now_s: float, round_trip_s: float, policy: AwayPolicy) -> Link:
    """A beat has come, and with it the newest round trip. What is late is not learnt: the limit does not drift up."""
    in_time = round_trip_s <= limit_s(link, policy)
    link = replace(
        link,
        heard_s=now_s,
        late=0 if in_time else link.late + 1,
        good=link.good + 1 if in_time else 0,
    )
    if link.away:
        return _maybe_back(replace(link, recent=(*link.recent, round_trip_s)[-policy.relearn :]), policy)
    if link.late >= policy.late_in_a_row:
        return replace(link, away=True, good=0, recent=())
    return replace(link, usual=(*link.usual, round_trip_s)[-policy.memory :]) if in_time else link


def silent(link: Link, now_s: float, policy: AwayPolicy) -> Link:
    """The clock has moved on: away, if nothing came for a beat and the link's limit."""
    if link.away or _silence_s(link, now_s) <= policy.beat_s + limit_s(link, policy):
        return link
    return replace(link, away=True, good=0, recent=())


def judge(link: Link, now_s: float, policy: AwayPolicy) -> Present | Away:
    """The verdict, and why. Changes nothing: `heard` and `silent` do."""
    if not link.away:
        return Present()
    allowed = limit_s(link, policy)
    rule = (
        "away.latency_ms" if policy.latency_s is not None else f"median + {policy.k:g} MAD of {len(link.usual)} beats"
    )
    if link.heard_s is None:
        return Away(f"never heard in {now_s - link.since_s:.1f} s")
    if (silence := _silence_s(link, now_s)) > policy.beat_s + allowed:
        return Away(f"silent for {silence:.1f} s, allowed {policy.beat_s + allowed:.2f} s = a beat + {rule}")
    if link.good:
        return Away(f"heard again, {link.good} of {policy.good_in_a_row} beats in time")
    seen = f"{link.recent[-1] * 1000:.0f} ms" if link.recent else "late"
    return Away(f"round trip {seen}, allowed {allowed * 1000:.0f} ms = {rule}")


def _silence_s(link: Link, now_s: float) -> float:
    return now_s - (link.heard_s if link.heard_s is not None else link.since_s)


def _maybe_back(link: Link, policy: AwayPolicy) -> Link:
    """Present again after enough good beats; or after many late but steady ones, by which the limit is learnt anew."""
    if link.good >= policy.good_in_a_row:
        known = link.usual or link.recent[-policy.good_in_a_row :]
        return replace(link, away=False, late=0, usual=known, recent=())
    if policy.latency_s is None and len(link.recent) == policy.relearn:
        anew = replace(link, usual=link.recent)
        if max(link.recent) <= limit_s(anew, policy):
            return replace(anew, away=False, late=0, recent=())
    return link
