"""The loss scale as a value behaves as PyTorch's own scaler, step for step."""

import pytest
import torch

from trainer.compute.scaler import LossScaler


@pytest.mark.parametrize("overflows", ["", "1", "0110", "00100100000", "1111", "000001"])
def test_the_scale_is_that_of_pytorchs_gradscaler_after_every_step(overflows):
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    theirs = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    ours = LossScaler(scale=64.0, growth_interval=3)
    for overflow in overflows + "0000000":
        optimizer.zero_grad()
        theirs.scale(parameter.sum() * (float("inf") if overflow == "1" else 1.0)).backward()
        theirs.step(optimizer)
        theirs.update()
        ours = ours.after_overflow() if overflow == "1" else ours.after_step()
        assert ours.scale == theirs.get_scale()


def test_a_scaler_that_is_off_never_changes():
    off = LossScaler.off()
    assert off.after_step().scale == off.after_overflow().scale == off.scale == 1.0


def test_the_scale_goes_through_a_checkpoint():
    scaler = LossScaler().after_step().after_overflow().after_step()
    assert LossScaler(**scaler.to_json()) == scaler
