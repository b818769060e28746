"""A trainer's container gets what training needs and nothing else."""

import pytest

from trainer.config import Limits
from trainer.deploy.container import Engine, docker_arguments
from trainer.errors import HostError
from trainer.launch import Host

CPU = Host("ap-1", "ap", "10.88.0.1")
GPU = Host("sin", "ap", "10.88.0.1", devices=2, gpus=True)


def arguments(host=CPU, engine=None, **limits) -> tuple[str, ...]:
    return docker_arguments(host, engine or Engine(), Limits(**limits), 60)


def test_it_has_no_rights():
    assert {"--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--user=10001:10001"} <= set(
        arguments()
    )


def test_settings_are_read_only_and_the_state_folder_is_not():
    assert "--volume=/etc/gradferry:/etc/gradferry:ro" in arguments()
    assert "--volume=/var/lib/gradferry:/var/lib/gradferry:rw" in arguments()


def test_bounds_are_set_where_the_run_asks_for_them():
    assert not [a for a in arguments() if a.startswith(("--cpus", "--memory"))]
    bounded = arguments(cpus=0.5, memory_gb=1.5)
    assert {"--cpus=0.5", "--memory=1536m", "--memory-swap=1536m"} <= set(bounded)


def test_gpus_come_by_cdi_where_the_engine_knows_it_and_by_the_runtime_elsewhere():
    assert "--device=nvidia.com/gpu=all" in arguments(GPU, Engine(cdi=True, runtimes=["nvidia"]))
    assert "--gpus=all" in arguments(GPU, Engine(runtimes=["nvidia", "runc"]))
    assert not [a for a in arguments(CPU, Engine(cdi=True)) if "gpu" in a]


def test_a_host_whose_engine_cannot_give_gpus_is_named_with_the_cure():
    with pytest.raises(HostError, match="sin: has GPUs, but its Docker knows neither CDI nor the nvidia runtime"):
        arguments(GPU, Engine(runtimes=["runc"]))
