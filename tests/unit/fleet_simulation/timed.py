"""A fleet in simulated time: latencies, cuts in one or both directions, loss, slow transfers, heartbeats and the store.

The members, the away policy and the proposing are the real ones; time is a number that jumps from event to event.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.unit.fleet_simulation.node import Node, Part, Write
from tests.unit.fleet_simulation.truth import Truth
from trainer.data.committed import Terms, host_of
from trainer.data.ledger import Ledger, fresh
from trainer.membership import board as store
from trainer.membership.away import AwayPolicy, Link, heard, silent
from trainer.membership.board import Announcement, Board
from trainer.membership.hearing import Row, Rows, merged
from trainer.membership.incarnation import Announce, Declare, RestartPolicy, Waiting, consider
from trainer.membership.local_mode import GoOn, LocalBounds, Pause, discount, expired, local_mode
from trainer.membership.proposing import Proposer, ProposingPolicy, Standing, decide
from trainer.sync.commit import machine
from trainer.sync.commit.events import BoardSeen, BreakOff, Expired, Offer, Remind, Second, StateArrived, Take
from trainer.sync.commit.member import Phase


@dataclass(frozen=True)
class Setting:
    """Seconds everywhere."""

    hosts: tuple[str, ...] = ("ap", "eu", "na")
    one_way_s: float = 0.08
    jitter_s: float = 0.01
    window_s: float = 0.5
    transfer_s: float = 2.0
    exchange_s: float = 0.2
    stuck_s: float = 4.0
    samples: int = 2400
    batch: int = 12
    ahead: int = 30
    bounds: LocalBounds = field(default_factory=lambda: LocalBounds(seconds=30.0, windows=64, loan_s=40.0))
    away: AwayPolicy = field(default_factory=AwayPolicy)
    proposing: ProposingPolicy = field(default_factory=lambda: ProposingPolicy(hosts=3))


@dataclass
class Process:
    """What stands around a node: what it has heard, when it began to wait, what it did and when."""

    node: Node
    links: dict[str, Link] = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)
    proposer: Proposer = field(default_factory=Proposer)
    beats: int = 0
    waits: tuple[Phase, int, int, float] = (Phase.OUT, -1, -1, 0.0)
    waiting: Waiting = field(default_factory=Waiting)
    absent: dict[str, float] = field(default_factory=dict)
    windows: list[float] = field(default_factory=list)
    alive: bool = True


class Fleet:
    """Faults are set from outside: `cut` holds directed pairs of hosts, `loss` a share of messages."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.dice, self.now_s = setting, random.Random(seed), 0.0
        start = fresh(setting.samples, 1, Terms(0, setting.batch, 2, setting.ahead))
        self.truth, self.board, self.lives = Truth(start), Board(), 0
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.processes: dict[str, Process] = {}
        self.cut: set[tuple[str, str]] = set()
        self.loss, self.order = 0.0, 0
        self.commits: list[tuple[float, int]] = []
        self.start = start
        for host in setting.hosts:
            self.boot(host, start)

    # -- time --------------------------------------------------------------------------------------------------------
    def at(self, delay_s: float, act: Callable[[], None]) -> None:
        self.order += 1
        heapq.heappush(self.queue, (self.now_s + delay_s, self.order, act))

    def run(self, until_s: float, end: Callable[[], bool] = lambda: False) -> None:
        while self.queue and self.queue[0][0] <= until_s and not end():
            self.now_s, _, act = heapq.heappop(self.queue)
            step = self.truth.step
            act()
            if self.truth.step > step:
                self.commits.append((self.now_s, self.truth.step))
        if not end():
            self.now_s = until_s

    # -- hosts -------------------------------------------------------------------------------------------------------
    def boot(self, host: str, checkpoint: Ledger | None) -> Process:
        self.lives += 1
        member = machine.newborn(host, str(self.lives), checkpoint)
        node = Node(member, self.truth, self.post, self.write, checkpoint)
        p = self.processes[host] = Process(node)
        self.at(self.dice.random() * 0.1, lambda: self.beat(p))
        return p

    def kill(self, host: str) -> None:
        self.processes.pop(host).alive = False

    def isolate(self, host: str) -> None:
        self.cut |= {pair for other in self.hosts() for pair in ((host, other), (other, host)) if other != host}

    def hosts(self) -> set[str]:
        return {*self.setting.hosts, *self.processes}

    def reaches(self, a: str, b: str) -> bool:
        return a == b or ((a, b) not in self.cut and b in self.processes)

    # -- network and store -------------------------------------------------------------------------------------------
    def delay_s(self) -> float:
        late = 0.5 if self.dice.random() < self.loss else 0.0  # a lost packet is sent again
        return self.setting.one_way_s + late + self.dice.random() * self.setting.jitter_s

    def post(self, sender: str, to: str, what: Part | Second) -> None:
        a, b = host_of(sender), host_of(to)
        size_s = self.setting.exchange_s if isinstance(what, Part) else 0.0
        self.at(self.delay_s() + size_s, lambda: self.arrive(a, b, to, what))

    def arrive(self, a: str, b: str, to: str, what: Part | Second) -> None:
        p = self.processes.get(b)
        if p is not None and p.node.name == to and self.reaches(a, b):
            p.node.receives(what)
            self.work(p)

    def in_majority(self, host: str) -> bool:
        """A store's voter stands on each host of the inventory."""
        voters = self.setting.hosts
        return 2 * sum(self.reaches(host, v) and self.reaches(v, host) for v in voters) > len(voters)

    def write(self, who: str, write: Write) -> None:
        self.at(2 * self.delay_s(), lambda: self._written(host_of(who), write))

    def _written(self, host: str, write: Write) -> None:
        if not self.in_majority(host):
            return
        before, self.board = self.board, write(self.board)
        incarnation = self.board.incarnation
        if incarnation.number > before.incarnation.number:
            self.truth.declared(incarnation.number, self.truth.past[incarnation.digest][-1])
        if self.board is not before:
            for p in list(self.processes.values()):
                self.at(self.delay_s(), lambda p=p, board=self.board: self.watch(p, board))  # type: ignore[misc]

    def watch(self, p: Process, board: Board) -> None:
        if p.alive and self.in_majority(host_of(p.node.name)):
            p.node.happens(BoardSeen(board))
            self.work(p)

    # -- a process: heartbeat, judgement, training -------------------------------------------------------------------
    def beat(self, p: Process) -> None:
        if not p.alive:
            return
        me, away = p.node.name, self.setting.away
        p.links = {m: silent(link, self.now_s, away) for m, link in p.links.items()}
        p.beats += 1
        hears = frozenset(m for m, link in p.links.items() if not link.away)
        p.rows = {**p.rows, me: Row(me, p.beats, hears, p.node.member.full)}
        sent_s, rows = self.now_s, dict(p.rows)
        for host in list(self.processes):
            if host != host_of(me):
                self.at(self.delay_s(), lambda to=host: self.hear(to, me, sent_s, rows))  # type: ignore[misc]
        self.watch(p, self.board)
        self.judge(p)
        p.node.happens(Remind())
        self.work(p)
        self.at(away.beat_s, lambda: self.beat(p))

    def hear(self, to: str, sender: str, sent_s: float, rows: Rows) -> None:
        p = self.processes.get(to)
        if p is None or not self.reaches(host_of(sender), to):
            return
        link = p.links.get(sender, Link(self.now_s))
        p.links[sender] = heard(link, self.now_s, 2 * (self.now_s - sent_s), self.setting.away)
        p.rows = merged(p.rows, (r for r in rows.values() if r.member != p.node.name))

    def judge(self, p: Process) -> None:
        m = p.node.member
        if p.waits[:3] != (m.phase, m.generation, m.step):
            p.waits = (m.phase, m.generation, m.step, self.now_s)
        stuck = m.phase in (Phase.REDUCE, Phase.SECOND) and self.now_s - p.waits[3] > self.setting.stuck_s
        self.restart(p)
        standing = Standing(m.me, m.inside, stuck)
        p.proposer, decision = decide(p.proposer, standing, m.board, p.rows, self.now_s, self.setting.proposing)
        if decision.break_off:
            p.node.happens(BreakOff())
        if decision.propose:
            number, members = m.board.newest + 1, decision.propose
            self.write(m.me, lambda b: store.proposed(b, number, members))
        holders = set(m.ledger.stock) - m.board.members if m.ledger else set()
        p.absent = {h: p.absent.get(h, self.now_s) for h in holders}
        p.node.happens(Expired(expired(p.absent, self.now_s, self.setting.bounds)))

    def restart(self, p: Process) -> None:
        """Where nobody with the state is left, say what this host has; declare the best when all have."""
        m = p.node.member
        best = max((s for s in (m.ledger, p.node.checkpoint) if s), key=lambda s: (s.incarnation, s.step), default=None)
        host = host_of(m.me)
        mine = Announcement(host, best.step, best.digest, best.incarnation) if best else Announcement(host, -1, "")
        policy = RestartPolicy(frozenset(self.setting.hosts))
        p.waiting, decision = consider(p.waiting, m.me, mine, m.board, p.rows, self.now_s, policy)
        match decision:
            case Announce(announcement):
                p.node.happens(BreakOff())
                self.write(m.me, lambda b: store.announced(b, announcement))
            case Declare(number, step, digest, seen):
                self.write(m.me, lambda b: store.declared(b, number, step, digest, seen))

    def work(self, p: Process) -> None:
        """The training thread: sum, offer, and only while out of a generation go on summing without a commit."""
        m = p.node.member
        if p.alive and p.node.window is None and m.phase not in (Phase.REDUCE, Phase.SECOND):
            outside = not m.inside and self.goes_on(p) == GoOn()
            if outside or (m.phase == Phase.SUM and not m.current):
                p.node.happens(Take())
            if p.node.window is not None:
                number = p.node.window.number
                self.at(self.setting.window_s, lambda: self.summed(p, number))
            elif m.phase == Phase.SUM:
                worth = discount(max(0, m.staleness), self.setting.bounds.staleness)
                p.node.happens(Offer(discount=worth, speed=1.0))
        if p.node.fetch is not None and p.node.fetching is None and not p.node.member.full:
            self.fetch(p)

    def goes_on(self, p: Process) -> GoOn | Pause:
        """Local mode: while in no generation, within its bounds."""
        m = p.node.member
        since_s = p.waits[3] if p.waits[0] in (Phase.OUT, Phase.JOIN) else self.now_s
        return local_mode(len(m.frozen) + len(m.current), since_s, self.now_s, self.setting.bounds)

    def summed(self, p: Process, number: int) -> None:
        if p.alive and p.node.window is not None and p.node.window.number == number:
            p.node.finish_window()
            p.windows.append(self.now_s)
            self.work(p)

    def fetch(self, p: Process) -> None:
        """From the newest neighbour that can be reached: the whole state, or the missing results if they are fewer."""
        host, m = host_of(p.node.name), p.node.member
        donors = [
            d.node.member.ledger
            for h, d in self.processes.items()
            if d.node.member.full and d.node.member.incarnation == m.incarnation and self.reaches(h, host)
        ]
        donors = [d for d in donors if d is not None and d.step >= m.kept_from]
        if not donors:
            return
        state = p.node.fetching = max(donors, key=lambda d: d.step)
        missing = state.step - m.ledger.step if m.ledger else 1_000_000
        self.at(min(self.setting.transfer_s, max(1, missing) * self.setting.exchange_s), lambda: self.fetched(p, state))

    def fetched(self, p: Process, state: Ledger) -> None:
        if p.alive:
            p.node.fetching = None
            p.node.happens(StateArrived(state))
            self.work(p)
