"""Several members over a network and a store that delay, lose, reorder and repeat, in an order that dice decide.

Nothing here has a clock: whoever may act next is drawn, so every interleaving of messages, store writes, faults and
wrong proposals can come up. `settle` then lets everything work, and the run must come to its end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.unit.fleet_simulation.node import Node, Part, Write
from tests.unit.fleet_simulation.truth import Truth, Violation
from trainer.data.committed import Terms, host_of
from trainer.data.ledger import Ledger, fresh
from trainer.membership import board as store
from trainer.membership.board import Board
from trainer.sync.commit import machine
from trainer.sync.commit.events import (
    Accepts,
    BoardSeen,
    BreakOff,
    Expired,
    Leave,
    Offer,
    Remind,
    Second,
    StateArrived,
    Take,
)
from trainer.sync.commit.member import Phase


@dataclass(frozen=True)
class Case:
    """What one seed is played with."""

    hosts: int = 3
    newcomers: int = 1
    samples: int = 40
    batch: int = 6
    ahead: int = 3
    turns: int = 400
    elastic: bool = False


def drawn(dice: random.Random, turns: int) -> Case:
    """A case for random schedules: small, so that few steps make a whole run with its tail."""
    return Case(
        hosts=dice.choice([2, 3, 3, 4]),
        newcomers=dice.randint(0, 2),
        samples=dice.randint(8, turns // 8),
        batch=dice.randint(1, 9),
        ahead=dice.randint(2, 6),
        turns=turns,
        elastic=dice.random() < 0.3,
    )


class World:
    """`dice` decide everything; the same seed gives the same run."""

    def __init__(self, case: Case, dice: random.Random) -> None:
        self.case, self.dice = case, dice
        self.start = fresh(case.samples, 1, Terms(0, case.batch, 1, case.ahead, case.elastic))
        self.truth, self.board, self.lives = Truth(self.start), Board(), 0
        self.nodes: dict[str, Node] = {}
        self.trouble, self.haste = dice.choice([0.1, 0.4, 1.0]), dice.choice([0.05, 0.3, 1.0])
        self.transfers = dice.choice([0.03, 0.1, 0.5])  # how fast a state is fetched
        self.mail: list[tuple[str, Part | Second]] = []
        self.writes: list[tuple[str, Write]] = []
        self.boards: list[Board] = [self.board]
        self.stops: dict[str, Ledger | None] = {}  # hosts that are off, with their checkpoint
        for i in range(case.hosts):
            self.boot(f"h{i}", self.start)
        self.restart_if_all_are_gone()
        self.stops.update({f"n{i}": None for i in range(case.newcomers)})

    # -- hosts -------------------------------------------------------------------------------------------------------
    def boot(self, host: str, checkpoint: Ledger | None) -> None:
        self.lives += 1
        member = machine.newborn(host, str(self.lives), checkpoint)
        self.nodes[member.me] = Node(
            member,
            self.truth,
            lambda _, to, what: self.mail.append((to, what)),
            lambda who, write: self.writes.append((who, write)),
            checkpoint,
        )

    def crash(self, node: Node) -> None:
        del self.nodes[node.name]
        self.stops[host_of(node.name)] = node.checkpoint

    def put(self, write: Write) -> None:
        self.board = write(self.board)
        self.boards.append(self.board)

    # -- what can happen, one thing a turn ---------------------------------------------------------------------------
    def turn(self) -> None:
        """Work is likelier than trouble, and a broken generation is likelier to be replaced than a whole one."""
        kinds: list[tuple[float, Callable[[], None]]] = [
            (8.0 if self.mail else 0.0, self.deliver),
            (2.0 if self.writes else 0.0, self.write_to_store),
            (2.0, self.look),
            (1.5, self.accumulate),
            (3.0, self.offer),
            (0.2, self.remind),
            (self.transfers, self.transfer),
            (0.05, self.restart_if_all_are_gone),
            (0.3 if self.broken() else 0.05 * self.trouble, self.propose),
            (0.15 * self.trouble, self.break_off),
            (0.03 * self.trouble, self.crash_one),
            (0.2, self.boot_one),
            (0.3, self.expire),
            (0.05, self.wish),
            (0.01 * self.trouble, self.leave_one),
        ]
        self.dice.choices([k for _, k in kinds], [w for w, _ in kinds])[0]()

    def broken(self) -> bool:
        """Whether somebody of the active generation has left it and nothing newer is under way, or nobody runs."""
        notes = self.board.notes_of(self.board.newest).values()
        if self.board.newest > self.board.active and all(n.seen == self.board.active for n in notes):
            return self.dice.random() < self.haste
        here = [self.nodes.get(n) for n in self.board.members]
        return not here or any(n is None or n.member.phase in (Phase.OUT, Phase.JOIN) for n in here)

    def one(self, like: Callable[[Node], bool] = lambda _: True) -> Node | None:
        nodes = [n for n in self.nodes.values() if like(n)]
        return self.dice.choice(nodes) if nodes else None

    def deliver(self) -> None:
        if not self.mail:
            return
        at = self.dice.randrange(len(self.mail))
        to, what = self.mail[at] if self.dice.random() < 0.1 else self.mail.pop(at)
        if to in self.nodes and self.dice.random() > 0.03:
            self.nodes[to].receives(what)

    def write_to_store(self) -> None:
        if self.writes:
            at = self.dice.randrange(len(self.writes))
            _, write = self.writes[at] if self.dice.random() < 0.1 else self.writes.pop(at)
            if self.dice.random() > 0.05:
                self.put(write)

    def look(self) -> None:
        node = self.one(lambda n: n.member.board.revision < self.board.revision)
        if node:
            node.happens(BoardSeen(self.board if self.dice.random() < 0.8 else self.dice.choice(self.boards[-6:])))
            desired = node.member.board.desired
            if desired is not None and self.dice.random() < 0.5:
                node.happens(Accepts(desired))

    def accumulate(self) -> None:
        if node := self.one():
            node.finish_window() if node.window else node.happens(Take())

    def offer(self) -> None:
        if node := self.one(lambda n: n.member.phase == Phase.SUM):
            node.happens(Offer(speed=self.dice.choice([0.0, 1.0, 3.0])))

    def remind(self) -> None:
        if node := self.one():
            node.happens(Remind())

    def break_off(self) -> None:
        if node := self.one():
            node.happens(BreakOff())

    def propose(self) -> None:
        """Any set, the dead among them at times: nobody's judgement is trusted."""
        names = sorted({*self.nodes, *self.board.members} if self.dice.random() < 0.1 else self.nodes)
        if names:
            some = names if self.dice.random() < 0.5 else self.dice.sample(names, self.dice.randint(1, len(names)))
            number = self.board.newest + 1
            self.put(lambda b: store.proposed(b, number, frozenset(some)))

    def crash_one(self) -> None:
        if node := self.one():
            self.crash(node)

    def boot_one(self) -> None:
        if self.stops:
            host = self.dice.choice(sorted(self.stops))
            self.boot(host, self.stops.pop(host))

    def transfer(self) -> None:
        """A state transfer takes time: it begins with a snapshot of some donor, and arrives turns later."""
        node = self.one(lambda n: n.fetch is not None)
        if node is None:
            return
        if self.dice.random() < 0.1:
            node.fetch = node.fetching = None  # it broke, and nobody says so
        elif node.fetching is not None:
            snapshot, node.fetching = node.fetching, None
            node.happens(StateArrived(snapshot))
        elif donors := [n.member.ledger for n in self.nodes.values() if n.member.full and n is not node]:
            node.fetching = self.dice.choice(donors)

    def expire(self) -> None:
        if node := self.one():
            ledger = node.member.ledger
            holders = sorted(ledger.stock) if ledger else []
            node.happens(Expired(frozenset(m for m in holders if self.dice.random() < 0.7)))

    def wish(self) -> None:
        terms = replace(self.start.terms, global_batch=self.dice.randint(1, 9))
        self.put(lambda b: store.wished(b, replace(terms, revision=b.desired.revision + 1 if b.desired else 1)))

    def leave_one(self) -> None:
        if len(self.nodes) > 1 and (node := self.one()):
            node.happens(Leave())

    def restart_if_all_are_gone(self) -> None:
        """Nobody with the state is left of the active generation: all go on from the best one of any host."""
        active = [self.nodes[n] for n in self.board.members if n in self.nodes]
        if any(n.member.full for n in active):
            return
        for node in active:
            node.happens(BreakOff())  # who says what it could start from is in no generation any more
        if not self.board.members and self.board.active and any(n.member.full for n in self.nodes.values()):
            return  # declared already, and somebody can begin
        states = [s for n in self.nodes.values() for s in (n.member.ledger, n.checkpoint) if s is not None]
        if not states:
            return
        best = max(states, key=lambda s: (s.incarnation, s.step))
        number = self.board.incarnation.number + 1
        self.put(lambda b: store.declared(b, number, best.step, best.digest, b.active))
        self.truth.declared(number, best)

    # -- and then no more faults -------------------------------------------------------------------------------------
    def settle(self, rounds: int = 600) -> None:
        """Everybody back, everything arrives, wishes are reasonable: from any state the run comes to its end."""
        while self.stops:
            self.boot_one()
        quiet, step = 0, -1
        for i in range(rounds):
            if self.truth.ledgers[-1].complete:
                return
            self.restart_if_all_are_gone()
            self._calm_round()
            quiet = 0 if self.truth.step > step else quiet + 1
            step = self.truth.step
            alone = self.board.members != frozenset(self.nodes)
            if (quiet or alone) and i % 8 == 0:
                self._propose_all()
        raise Violation(f"no end after the faults ceased: step {self.truth.step}, {self._describe()}")

    def _propose_all(self) -> None:
        for node in self.nodes.values():
            node.happens(BreakOff())
        number = self.board.newest + 1
        self.put(lambda b: store.proposed(b, number, frozenset(self.nodes)))

    def _calm_round(self) -> None:
        while self.mail:
            to, what = self.mail.pop(0)
            if to in self.nodes:
                self.nodes[to].receives(what)
        while self.writes:
            self.put(self.writes.pop(0)[1])
        for node in list(self.nodes.values()):
            node.happens(BoardSeen(self.board))
            node.happens(Remind())
            node.happens(Take())
            node.finish_window()
            absent = frozenset(m for m in node.member.ledger.stock if m not in self.nodes) if node.member.ledger else ()
            node.happens(Expired(frozenset(absent)))
            node.happens(Offer(speed=1.0))
            self._calm_transfer(node)
            if node.left:
                self.crash(node)
                self.boot_one()

    def _calm_transfer(self, node: Node) -> None:
        donors = [n.member.ledger for n in self.nodes.values() if n.member.full and n.member.ledger]
        if node.fetch is not None and donors:
            node.happens(StateArrived(max(donors, key=lambda x: x.step)))

    def _describe(self) -> str:
        phases = {n.name: (str(n.member.phase), n.member.step, n.member.full) for n in self.nodes.values()}
        return f"active {self.board.active} of {self.board.newest}: {sorted(self.board.members)}; {phases}"


def play(seed: int, turns: int) -> World:
    """One schedule: faults for `turns` turns, then none to the end. Raises Violation, or what a broken rule trips."""
    dice = random.Random(seed)
    world = World(drawn(dice, turns), dice)
    for _ in range(turns):
        world.turn()
        for node in world.nodes.values():
            if node.member.full and node.member.phase == Phase.SUM and world.dice.random() < 0.02:
                node.checkpoint = node.member.ledger
    world.settle()
    world.truth.check_end()
    return world
