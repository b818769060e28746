"""Three hosts of the test bed that provision.yml has made ready, shared by the tests of the roles."""

import pytest

from tests.testbed.bed import Bed, bed
from tests.testbed.playbook import Outcome

PROVISION = "playbooks/provision.yml"


@pytest.fixture(scope="package")
def cluster(shop, plan_named, tmp_path_factory) -> Bed:
    """Ready hosts (packages are in their image), provisioned once. A test leaves them as it found them."""
    with bed(shop, plan_named("roles")) as made:
        made.ansible(tmp_path_factory.mktemp("first")).play(PROVISION).check()
        yield made


@pytest.fixture
def provision(cluster, tmp_path):
    """`provision("--limit", "eu-1")`: provision.yml on the cluster, as a user would call it."""

    def play(*arguments: str) -> Outcome:
        return cluster.ansible(tmp_path).play(PROVISION, *arguments)

    return play
