"""From a name in run.yml to a module: the catalogue, and `package.module:factory` for models that users bring.

A factory is called with `model.args` and returns an `nn.Module` whose `forward(batch)` takes a dict of tensors
(dimension 0 is the sample) and returns `Scored(loss_sum, weight, correct)`: sums over what is scored, not means.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from trainer.errors import ModelError
from trainer.models.cnn import Cnn
from trainer.models.gpt import Gpt
from trainer.models.mlp import Mlp

Factory = Callable[..., nn.Module]

CATALOGUE: Mapping[str, Factory] = {"mlp": Mlp, "cnn": Cnn, "gpt": Gpt}


def build(factory: str, args: Mapping[str, Any]) -> nn.Module:
    """The model that `model.factory` and `model.args` describe. Raises ModelError with the cure."""
    make = _imported(factory) if ":" in factory else _named(factory)
    try:
        model = make(**args)
    except Exception as error:
        given = ", ".join(f"{name}={value!r}" for name, value in args.items())
        raise ModelError(
            f"model.factory = {factory}({given}) raised {type(error).__name__}: {_first_line(error)}",
            "Correct model.args, or the factory",
        ) from error
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"model.factory = {factory} returned {type(model).__name__}, expected a torch.nn.Module",
            "Return the module whose forward(batch) gives Scored(loss_sum, weight, correct)",
        )
    if not any(p.requires_grad for p in model.parameters()):
        raise ModelError(f"model.factory = {factory}: no parameter requires a gradient", "Leave at least one to train")
    return model


def _named(name: str) -> Factory:
    if name in CATALOGUE:
        return CATALOGUE[name]
    near = difflib.get_close_matches(name, CATALOGUE, n=1, cutoff=0.4)
    hint = f"Did you mean `{near[0]}`? " if near else ""
    raise ModelError(
        f"model.factory = {name} is not in the catalogue ({', '.join(sorted(CATALOGUE))})",
        f"{hint}Your own: package.module:factory",
    )


def _imported(path: str) -> Factory:
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"model.factory = {path}: no module named {error.name}",
            "Is it installed, or on PYTHONPATH, where the trainer runs?",
        ) from error
    except Exception as error:
        raise ModelError(
            f"model.factory = {path}: importing {module_name} raised {type(error).__name__}: {_first_line(error)}"
        ) from error
    found = getattr(module, attribute, None)
    if callable(found):
        return found
    public = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    near = difflib.get_close_matches(attribute, public, n=1, cutoff=0.5)
    raise ModelError(
        f"model.factory = {path}: {module_name} has no factory `{attribute}`",
        f"Did you mean `{near[0]}`?" if near else "",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]
