"""Which replica a process is, from its environment (RANK, WORLD_SIZE, …), as launch.py or torchrun set it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.errors import ConfigError


@dataclass(frozen=True)
class Place:
    """`agent_store`: torchrun already serves the store at the master's port."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    master: str = "127.0.0.1"
    port: int = 29500
    agent_store: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Place:
        """The default where RANK is not set. Raises ConfigError naming the variable."""
        if "RANK" not in environment and "WORLD_SIZE" not in environment:
            return cls()
        place = cls(
            rank=_number(environment, "RANK"),
            world=_number(environment, "WORLD_SIZE"),
            local_rank=_number(environment, "LOCAL_RANK", "0"),
            local_world=_number(environment, "LOCAL_WORLD_SIZE", "1"),
            master=environment.get("MASTER_ADDR", cls.master),
            port=_number(environment, "MASTER_PORT", str(cls.port)),
            agent_store=environment.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() in ("true", "1"),
        )
        if not 0 <= place.rank < place.world:
            raise ConfigError(f"RANK = {place.rank} is not below WORLD_SIZE = {place.world}", "Render the launch again")
        return place


def _number(environment: Mapping[str, str], name: str, default: str | None = None) -> int:
    text = environment.get(name, default)
    if text is None or not text.isdigit():
        raise ConfigError(f"{name} = {text}: expected a number", "RANK, WORLD_SIZE and LOCAL_RANK are set together")
    return int(text)
