"""The optimizer step on gradients that are given, and what of it must survive a restart."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trainer.compute.replica import Gradients
from trainer.config import Optimizer


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Name -> parameter that trains; a tied parameter stands once, under its first name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def build_optimizer(settings: Optimizer, parameters: dict[str, nn.Parameter]) -> torch.optim.Optimizer:
    """Frozen parameters are not in it, so they take no decay and have no state."""
    found = list(parameters.values())
    if settings.kind == "sgd":
        return torch.optim.SGD(
            found, lr=settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay, fused=True
        )
    return torch.optim.AdamW(
        found,
        lr=settings.lr,
        betas=settings.betas,
        eps=settings.eps,
        weight_decay=settings.weight_decay,
        fused=True,
    )


class Updater:
    """An optimizer with names. `updates`: optimizer steps that each parameter took part in."""

    def __init__(self, settings: Optimizer, model: nn.Module) -> None:
        self.parameters = trainable(model)
        self.optimizer = build_optimizer(settings, self.parameters)
        self.updates = dict.fromkeys(self.parameters, 0)

    def step(self, gradients: Gradients, lr: float) -> None:
        """One optimizer step at rate `lr`. A parameter without a gradient is skipped: no decay, no momentum."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        for (name, parameter), gradient in zip(self.parameters.items(), gradients, strict=True):
            parameter.grad = None if gradient is None else gradient.to(parameter.dtype)
            self.updates[name] += gradient is not None
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """The optimizer's state as `"<parameter>.<what>"` -> tensor."""
        found: dict[str, Tensor] = {}
        for name, parameter in self.parameters.items():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor):
                    found[f"{name}.{key}"] = value
        return found

    def load(self, tensors: dict[str, Tensor], updates: dict[str, int]) -> None:
        """Take over a state as `tensors` gave it."""
        known = self.optimizer.state_dict()
        state: dict[int, dict[str, Any]] = {}
        for index, name in enumerate(self.parameters):
            own = {key.rpartition(".")[2]: t for key, t in tensors.items() if key.rpartition(".")[0] == name}
            if own:
                state[index] = own
        self.optimizer.load_state_dict({"state": state, "param_groups": known["param_groups"]})
        self.updates = dict.fromkeys(self.parameters, 0) | updates
