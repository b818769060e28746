"""Every host role has the same shape, and says the same thing in its defaults and in its argument specs."""

import pytest
import yaml

from tests.unit.ansible_code import ANSIBLE

ROLES = [
    "host_facts",
    "host_base",
    "kernel_network",
    "firewall",
    "wireguard_mesh",
    "nvidia_driver",
    "docker_engine",
    "nvidia_container_toolkit",
    "maintenance_freeze",
    "monitoring",
]
PLANNED = [role for role in ROLES if role != "host_facts"]


def read(role, name):
    path = ANSIBLE / "roles" / role / name
    return yaml.safe_load(path.read_text()) if path.exists() else {}


@pytest.mark.parametrize("role", ROLES)
def test_defaults_and_argument_specs_agree(role):
    defaults = read(role, "defaults/main.yml")
    options = read(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert set(defaults) == set(options)
    for name, option in options.items():
        assert "default" in option, f"{name} has a default, so its spec has it too"
        assert option["default"] == defaults[name], name


@pytest.mark.parametrize("role", ROLES)
def test_variables_bear_the_name_of_their_role(role):
    names = [*read(role, "defaults/main.yml"), *read(role, "vars/main.yml")]
    assert [name for name in names if not name.startswith(f"{role}_")] == []


@pytest.mark.parametrize("role", ROLES)
def test_no_task_is_a_shell_command_and_every_task_has_a_name(role):
    for path in (ANSIBLE / "roles" / role / "tasks").glob("*.yml"):
        for task in yaml.safe_load(path.read_text()):
            assert task.get("name"), path
            assert "ansible.builtin.shell" not in task, path


@pytest.mark.parametrize("role", PLANNED)
def test_a_role_says_what_it_will_do_and_the_plan_asks_it(role):
    assert {f"{role}_steps", f"{role}_files"} <= set(read(role, "vars/main.yml"))
    plan = yaml.safe_load((ANSIBLE / "vars" / "plan.yml").read_text())
    assert f"{role}_steps" in plan["provision_steps"]
    assert f"{role}_files" in plan["provision_files"]


def test_the_managed_files_of_every_role_are_among_the_facts():
    watched = read("host_facts", "defaults/main.yml")["host_facts_files"]
    for role in PLANNED:
        for entry in read(role, "vars/main.yml")[f"{role}_files"]:
            literal = entry["dest"].replace("{{ wireguard_mesh_unit }}", "wg-quick@{{ mesh_interface }}.service")
            literal = literal.replace("{{ wireguard_mesh_conf }}", "/etc/wireguard/{{ mesh_interface }}.conf")
            literal = literal.replace("{{ maintenance_freeze_path }}", "/etc/gradferry-host/freeze.json")
            assert any(literal == p or literal.startswith(p.rstrip("*")) for p in watched), literal
