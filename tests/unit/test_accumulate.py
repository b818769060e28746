"""Sums of a window: their type, their parts, what is left behind; against autograd on the whole window at once."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.nn import functional

from trainer.accumulate import accumulate
from trainer.compute.recompute import recompute
from trainer.compute.replica import Replica
from trainer.models.scored import Scored

CPU = torch.device("cpu")


class Net(nn.Module):
    """A regression with a hidden layer; `used` says whether the second head takes part."""

    def __init__(self, dtype=torch.float64, dropout=0.0, activation_checkpoints=False):
        super().__init__()
        torch.manual_seed(1)
        self.a, self.b, self.spare = nn.Linear(5, 16), nn.Linear(16, 1), nn.Linear(16, 1)
        self.dropout, self.checkpoints = dropout, activation_checkpoints
        self.to(dtype)

    def hidden(self, x):
        return functional.dropout(torch.tanh(self.a(x)), self.dropout, self.training)

    def forward(self, batch):
        x = batch["x"].to(self.a.weight.dtype)
        hidden = recompute(self.hidden, x) if self.checkpoints else self.hidden(x)
        loss = (self.b(hidden) - batch["y"]).square().float().double().sum()
        return Scored(loss, torch.tensor(x.shape[0]), None)


def batches(*sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        {"x": torch.randn(n, 5, generator=generator, dtype=torch.float64), "y": torch.ones(n, 1, dtype=torch.float64)}
        for n in sizes
    ]


def replica(model, devices=1, autocast=nullcontext):
    return Replica(model, [CPU] * devices, autocast)


def whole(model, parts):
    one = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return accumulate(replica(model), [one])


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_micro_batches_of_any_sizes_on_any_devices_sum_to_the_whole_window(devices):
    parts = batches(4, 1, 7, 2)
    got = accumulate(replica(Net(), devices), parts)
    want = whole(Net(), parts)
    assert (got.weight, got.samples, want.weight) == (14, 14, 14)
    assert got.loss_sum == pytest.approx(want.loss_sum, abs=1e-4)
    for mine, theirs in zip(got.gradients, want.gradients, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-5)


def test_an_unused_parameter_has_no_gradient_and_none_is_left_on_the_model():
    model = Net()
    got = accumulate(replica(model), batches(3))
    names = [name for name, _ in model.named_parameters()]
    assert [n for n, g in zip(names, got.gradients, strict=True) if g is None] == ["spare.weight", "spare.bias"]
    assert all(p.grad is None for p in model.parameters())


def test_an_empty_share_is_a_contribution_of_nothing():
    got = accumulate(replica(Net()), [])
    assert (got.weight, got.samples, got.norm, got.finite) == (0, 0, 0, True)
    assert all(g is None for g in got.gradients)


def test_sums_of_bfloat16_parameters_are_float32_and_lose_no_small_addend():
    class Dot(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.zeros(1, dtype=torch.bfloat16))

        def forward(self, batch):
            return Scored((self.w * batch["x"].to(torch.bfloat16)).float().sum(), torch.tensor(1), None)

    parts = [{"x": torch.tensor([[value]])} for value in (256.0, *[1.0] * 100)]
    (gradient,) = accumulate(replica(Dot()), parts).gradients
    assert gradient.dtype == torch.float32
    assert gradient.item() == 356.0


@pytest.mark.parametrize("scale", [1024.0, 2.0**20])
def test_a_loss_scale_leaves_no_trace(scale):
    parts = batches(2, 3)
    plain, scaled = accumulate(replica(Net()), parts), accumulate(replica(Net()), parts, scale)
    assert scaled.norm == pytest.approx(plain.norm, rel=1e-12)
    assert scaled.loss_sum == plain.loss_sum


def test_activation_checkpoints_draw_the_same_dropout_and_give_the_same_gradient():
    parts = batches(6, 6)
    torch.manual_seed(3)
    kept = accumulate(replica(Net(dropout=0.5)), parts)
    torch.manual_seed(3)
    computed_again = accumulate(replica(Net(dropout=0.5, activation_checkpoints=True)), parts)
    assert computed_again.norm == kept.norm


def test_a_gradient_that_is_not_finite_is_seen():
    parts = batches(2, 2)
    parts[1]["x"][0, 0] = float("nan")
    assert not accumulate(replica(Net()), parts).finite


def test_the_host_waits_for_the_device_once_a_window(monkeypatch):
    reads = []
    for name in ("item", "tolist", "__bool__", "__float__", "__int__", "numpy"):
        real = getattr(torch.Tensor, name)

        def counted(self, *arguments, real=real, name=name):
            reads.append(name)
            return real(self, *arguments)

        monkeypatch.setattr(torch.Tensor, name, counted)
    accumulate(replica(Net()), batches(2, 2, 2, 2))
    assert reads == ["tolist"]
