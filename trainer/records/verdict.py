"""What a checker says: kept, broken, or not to be told. Not judged is not passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trainer.records.history import Histories


@dataclass(frozen=True)
class Kept:
    """The promise was kept in all of the history. `note`: what it is worth, such as how many samples."""

    note: str = ""


@dataclass(frozen=True)
class Broken:
    """The promise was not kept; `why` names the first place."""

    why: str


@dataclass(frozen=True)
class Unknown:
    """The history does not tell."""

    why: str


Verdict = Kept | Broken | Unknown


class Checker(Protocol):
    """A promise, and how to see from a history whether it was kept."""

    def judge(self, histories: Histories) -> Verdict: ...


@dataclass(frozen=True)
class Report:
    """Verdicts by the checkers' names."""

    verdicts: dict[str, Verdict]

    @property
    def worst(self) -> Verdict:
        """Broken before unknown before kept."""
        ranked = sorted(self.verdicts.values(), key=lambda v: (Broken, Unknown, Kept).index(type(v)))
        return ranked[0] if ranked else Unknown("no checker")

    def raise_unless_kept(self) -> None:
        """Raises AssertionError listing every verdict, for tests."""
        if not isinstance(self.worst, Kept):
            raise AssertionError("\n".join(f"{name}: {verdict}" for name, verdict in self.verdicts.items()))


def check(histories: Histories, *checkers: Checker) -> Report:
    """Ask each checker. One that fails on a history it did not expect says unknown, and why."""
    return Report({type(checker).__name__: _ask(checker, histories) for checker in checkers})


def _ask(checker: Checker, histories: Histories) -> Verdict:
    if histories.damaged:
        return Unknown(f"unreadable lines in the history: {', '.join(histories.damaged[:3])}")
    try:
        return checker.judge(histories)
    except Exception as error:
        return Unknown(f"the checker failed: {type(error).__name__}: {error}")
