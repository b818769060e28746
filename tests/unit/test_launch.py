"""What each host starts follows from the inventory and the run, and from nothing else."""

import json

import pytest

from trainer.config import Run, load_run, revision
from trainer.errors import ConfigError
from trainer.launch import Host, launches, overrides_of, run_json

THREE = [Host("ap-1", "ap", "10.88.0.1"), Host("eu-1", "eu", "10.88.0.2"), Host("na-1", "na", "10.88.0.3")]


def test_one_process_a_host_has_its_rank_and_explicit_addresses():
    plan = launches(Run(), THREE)
    assert [plan[h.name].environment["RANK"] for h in THREE] == ["0", "1", "2"]
    assert {plan[h.name].environment["MASTER_ADDR"] for h in THREE} == {"10.88.0.1"}
    assert plan["na-1"].environment["GLOO_SOCKET_IFNAME"] == "gf0"
    assert plan["eu-1"].argv[0] == "gradferry"
    assert plan["eu-1"].batch == "global batch 96 = micro_batch 8 × accum_steps 4 × 3 replicas"


def test_a_host_with_several_devices_runs_torchrun_and_the_ranks_go_on_after_it():
    hosts = [Host("a", "ap", "10.88.0.1", devices=2), Host("b", "eu", "10.88.0.2", devices=2)]
    plan = launches(Run(), hosts)
    assert plan["b"].first_rank == 2
    assert plan["b"].world_size == 4
    assert plan["b"].argv[0] == "torchrun"
    assert "--node-rank=1" in plan["b"].argv
    assert "--local-addr=10.88.0.2" in plan["b"].argv
    assert "RANK" not in plan["b"].environment


def test_one_host_with_one_device_needs_no_rendezvous():
    plan = launches(Run(), THREE[:1])
    assert plan["ap-1"].strategy == "single"
    assert "MASTER_ADDR" not in plan["ap-1"].environment


def test_a_strategy_of_one_process_is_refused_for_three_hosts():
    with pytest.raises(ConfigError, match="strategy = single trains in one process, the inventory has 3 devices"):
        launches(Run(strategy="single"), THREE)
    with pytest.raises(ConfigError, match="no hosts"):
        launches(Run(), [])


def test_the_run_json_of_a_host_is_read_back_as_the_same_run(tmp_path):
    run = Run.model_validate({"accumulation": {"global_batch": 250}})
    path = tmp_path / "run.json"
    path.write_text(run_json(run, THREE))
    assert load_run(path) == run
    assert json.loads(path.read_text())["revision"] == revision(run)


def test_short_and_dotted_extra_variables_become_overrides():
    extra = {"accum_steps": "8", "optimizer.lr": 0.05, "ansible_user": "root", "confirm": "digits"}
    assert overrides_of(extra) == {"accumulation.accum_steps": 8, "optimizer.lr": 0.05}


def test_fields_that_stand_in_no_section_are_taken_by_their_name():
    extra = {"epochs": "3", "seed": 5, "strategy": "ddp", "clip_grad_norm": "null", "name": "x", "devices": "2"}
    assert overrides_of(extra) == {"epochs": 3, "seed": 5, "strategy": "ddp", "clip_grad_norm": None}


def test_a_section_given_as_a_whole_is_not_ignored():
    with pytest.raises(ConfigError, match="accumulation is a section .*\n.*such as accumulation.accum_steps"):
        overrides_of({"accumulation": {"accum_steps": 8}})


def test_a_misspelt_extra_variable_is_not_ignored(tmp_path):
    with pytest.raises(ConfigError, match="accum_stesp is not a setting\n  Did you mean `accum_steps`"):
        overrides_of({"accum_stesp": "8"})
    path = tmp_path / "run.yml"
    path.write_text("")
    with pytest.raises(ConfigError, match="command line  optimiser is not a known field\n  Did you mean `optimizer`"):
        load_run(path, overrides_of({"optimiser.lr": "0.1"}))
