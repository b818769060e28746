"""Hosts that start with a copy of another host's inner Docker, and what is cleaned away and what is not."""

import pytest

from tests.testbed.bed import bed
from tests.testbed.plan import THREE
from tests.testbed.seed import has_seed, seed_name, take_seed

pytestmark = pytest.mark.docker


@pytest.fixture
def seed(shop, plan_named):
    plan = plan_named("source", regions=THREE[:1])
    name = seed_name(shop.folders.clone_id, plan.name)
    with bed(shop, plan) as source:
        host = source.hosts["ap-1"]
        host.run("systemctl start docker && tar -C / -c usr/bin/true | docker import - tiny")
        host.run("docker create --name left-over tiny /usr/bin/true")
        take_seed(host, name, shop.images.tag("wan"), shop.owner())
        assert host.succeeds("docker image inspect tiny")
    yield name
    shop.client.volumes.get(name).remove()


def test_a_seeded_host_has_the_images_of_its_source_and_not_its_containers(shop, plan_named, seed):
    with bed(shop, plan_named("seeded", regions=THREE[:1], seed=seed)) as made:
        host = made.hosts["ap-1"]
        host.run("systemctl start docker")
        assert host.succeeds("docker image inspect tiny")
        assert host.run("docker ps -aq") == ""
        assert made.state.seeded
    assert has_seed(shop.client, seed)
