"""The models of the cases, as factories of modules that return `Scored`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.compute.recompute import recompute
from trainer.models.scored import IGNORED, Scored


class Unsupported(Exception):
    """A key or kind that the adapter does not know. It fails the case."""


class Stream:
    """The process-wide generator that the dropout cases prescribe."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def mask(self, shape: torch.Size, p: float, dtype: torch.dtype) -> Tensor:
        drawn = []
        for _ in range(shape.numel()):
            self.state = (1664525 * self.state + 1013904223) % 2**32
            drawn.append(float(self.state / 2**32 >= p))
        return torch.tensor(drawn, dtype=dtype).view(shape)

    def state_dict(self) -> dict[str, Any]:
        return {"state": self.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = int(state["state"])


class CaseModel(nn.Module):
    """Parameters by the case's names. `before_forward` is called at the start of every pass."""

    def __init__(self, given: Mapping[str, Any], dtype: torch.dtype) -> None:
        super().__init__()
        described = given["model"]
        self.kind = described["kind"]
        if self.kind not in _FORWARD:
            raise Unsupported(f"model.kind {self.kind}")
        self.described = described
        self.smoothing = given.get("loss", {}).get("label_smoothing", 0.0)
        self.recompute = given.get("recompute_activations", False)
        self.before_forward: Callable[[], None] = lambda: None
        for name, values in described["params"].items():
            trains = name not in described.get("frozen", ())
            self.register_parameter(name, nn.Parameter(torch.tensor(values, dtype=dtype), requires_grad=trains))
        self.stream = Stream(described["rng_seed"]) if "rng_seed" in described else None
        if self.kind == "batchnorm_linear":
            features = self.w.shape[1]
            self.register_buffer("running_mean", torch.zeros(features, dtype=dtype))
            self.register_buffer("running_var", torch.ones(features, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.zeros((), dtype=torch.int64))

    def forward(self, batch: Mapping[str, Tensor]) -> Scored:
        self.before_forward()
        loss_sum, weight = _FORWARD[self.kind](self, batch)
        if "factor" in batch:
            loss_sum = loss_sum * batch["factor"][0]
        return Scored(loss_sum, torch.as_tensor(weight), None)


def _squared(prediction: Tensor, batch: Mapping[str, Tensor]) -> tuple[Tensor, int]:
    residual = prediction - batch["y"]
    return (residual * residual).sum(), residual.numel()


def _linear(model: Any, x: Tensor) -> Tensor:
    return functional.linear(x, model.w, getattr(model, "b", None))


def _forward_linear(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, int]:
    return _squared(_linear(model, batch["x"]), batch)


def _forward_mlp(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, int]:
    hidden = torch.tanh(functional.linear(batch["x"], model.w1, model.b1))
    return _squared(functional.linear(hidden, model.w2, model.b2), batch)


def _forward_branch(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, int]:
    prediction = functional.linear(batch["x"], model.a)
    route = batch["route"].unsqueeze(1)
    if route.any():
        prediction = prediction + route * functional.linear(batch["x"], model.b)
    return _squared(prediction, batch)


def _forward_batchnorm(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, int]:
    momentum, eps = model.described["bn_momentum"], model.described["bn_eps"]
    if model.training:
        model.num_batches_tracked += 1
    x = functional.batch_norm(
        batch["x"], model.running_mean, model.running_var, None, None, model.training, momentum, eps
    )
    return _squared(_linear(model, x), batch)


def _forward_dropout(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, int]:
    p = model.described["p"]

    def masked(x: Tensor, w: Tensor) -> Tensor:
        return functional.linear(x * model.stream.mask(x.shape, p, x.dtype) / (1.0 - p), w, getattr(model, "b", None))

    if model.recompute:
        return _squared(recompute(masked, batch["x"], model.w, streams=[model.stream]), batch)
    return _squared(masked(batch["x"], model.w), batch)


def _forward_dot(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, int]:
    products = functional.linear(batch["x"], model.w.reshape(1, -1))
    return products.to(torch.promote_types(products.dtype, torch.float32)).sum(), products.shape[0]


def _forward_lm(model: Any, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    hidden = torch.tanh(functional.embedding(batch["tokens"][:, :-1], model.embed))
    logits = functional.linear(hidden, model.embed if model.kind == "lm_tied" else model.head).flatten(0, 1)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    targets = batch["labels"][:, 1:].flatten()
    loss = functional.cross_entropy(
        logits, targets, ignore_index=IGNORED, reduction="sum", label_smoothing=model.smoothing
    )
    return loss, (targets != IGNORED).sum()


_FORWARD: dict[str, Callable[[Any, Mapping[str, Tensor]], tuple[Tensor, Any]]] = {
    "linear": _forward_linear,
    "mlp": _forward_mlp,
    "branch": _forward_branch,
    "batchnorm_linear": _forward_batchnorm,
    "dropout_linear": _forward_dropout,
    "dot": _forward_dot,
    "lm": _forward_lm,
    "lm_tied": _forward_lm,
}
