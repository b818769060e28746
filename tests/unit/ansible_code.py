"""The Python under ansible/, for tests: filters and the readers that run on hosts are files, not packages."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ANSIBLE = Path(__file__).parents[2] / "ansible"


def filters(name: str) -> ModuleType:
    """Module of `ansible/filter_plugins/<name>.py`."""
    return _load(f"gradferry_filters_{name}", ANSIBLE / "filter_plugins" / f"{name}.py")


def action(name: str) -> ModuleType:
    """Module of `ansible/plugins/action/<name>.py`."""
    return _load(f"gradferry_action_{name}", ANSIBLE / "plugins" / "action" / f"{name}.py")


def reader(name: str) -> ModuleType:
    """Module of `ansible/module_utils/hostcard/<name>.py`, under the name that Ansible gives it on a host."""
    import ansible.module_utils as module_utils

    folder = str(ANSIBLE / "module_utils")
    if folder not in module_utils.__path__:
        module_utils.__path__.append(folder)
    return importlib.import_module(f"ansible.module_utils.hostcard.{name}")


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
