"""What tests on stand-in hosts share: the engine, and names for their beds."""

import os

import pytest

from tests.testbed.plan import Plan
from tests.testbed.workshop import Workshop, open_workshop


@pytest.fixture(scope="session")
def shop() -> Workshop:
    """The engine and this clone's folders; an engine is started where that is possible."""
    return open_workshop()


@pytest.fixture(scope="session")
def plan_named():
    """`plan_named("mesh", ...)`: a plan whose bed meets no bed of another run; further arguments as for Plan."""

    def make(name: str, **arguments: object) -> Plan:
        return Plan(f"{name}-{os.getpid()}", **arguments)

    return make
