"""The catalogue: sums that add up over micro-batches, and refusals that say what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from trainer.errors import DataError, ModelError
from trainer.models import CATALOGUE, IGNORED, Scored, build, probe, score

IMAGES = {"x": torch.rand(6, 8, 8), "y": torch.tensor([0, 1, 2, 3, 4, 5])}
TEXT = {"tokens": torch.randint(0, 256, (6, 17))}
SMALL_GPT = {"context": 16, "width": 16, "layers": 2, "heads": 2}
BATCHES = {"mlp": IMAGES, "cnn": IMAGES, "gpt": TEXT}
ARGS: dict[str, dict[str, object]] = {"mlp": {}, "cnn": {"width": 8, "blocks": 1, "groups": 2}, "gpt": SMALL_GPT}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors on several threads are slower, most of all beside other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def part(batch: dict[str, torch.Tensor], first: int, stop: int) -> dict[str, torch.Tensor]:
    return {name: value[first:stop] for name, value in batch.items()}


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_the_sums_of_micro_batches_add_up_to_those_of_the_whole(name: str) -> None:
    model, batch = build(name, ARGS[name]).double().eval(), BATCHES[name]
    whole, pieces = model(batch), [model(part(batch, a, b)) for a, b in ((0, 1), (1, 4), (4, 6))]
    torch.testing.assert_close(sum(p.loss_sum for p in pieces), whole.loss_sum)
    assert sum(int(p.weight) for p in pieces) == int(whole.weight) == (6 * 16 if name == "gpt" else 6)
    assert sum(int(p.correct) for p in pieces) == int(whole.correct)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_model_learns_its_batch_by_heart(name: str) -> None:
    torch.manual_seed(1)
    model, batch = build(name, ARGS[name]), BATCHES[name]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        scored = model(batch)
        (scored.loss_sum / scored.weight).backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(scored.loss_sum.detach() / scored.weight))
    assert losses[-1] < 0.5 * losses[0]


def test_what_is_ignored_is_neither_scored_nor_counted() -> None:
    logits = torch.randn(4, 3)
    scored = score(logits, torch.tensor([0, IGNORED, 2, IGNORED]))
    expected = score(logits[[0, 2]], torch.tensor([0, 2]))
    torch.testing.assert_close(scored.loss_sum, expected.loss_sum)
    assert (int(scored.weight), int(scored.correct)) == (2, int(expected.correct))  # type: ignore[arg-type]
    assert float(score(logits, torch.full((4,), IGNORED)).loss_sum) == 0.0


def test_gpt_does_not_look_ahead() -> None:
    model = build("gpt", SMALL_GPT).eval()
    tokens = torch.randint(0, 256, (1, 16))
    changed = tokens.clone()
    changed[0, 9] = (changed[0, 9] + 1) % 256
    before, after = model.logits(tokens), model.logits(changed)
    torch.testing.assert_close(before[:, :9], after[:, :9])
    assert not torch.allclose(before[:, 9:], after[:, 9:])


def test_gpt_ties_its_two_uses_of_the_vocabulary_unless_told_otherwise() -> None:
    tied, untied = build("gpt", SMALL_GPT), build("gpt", SMALL_GPT | {"tie_weights": False})
    difference = sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in tied.parameters())
    assert difference == 256 * 16


def test_recomputed_activations_give_the_same_gradients() -> None:
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(3)
        model = build("gpt", SMALL_GPT | {"dropout": 0.2, "checkpoint_activations": recompute})
        torch.manual_seed(4)
        model(TEXT).loss_sum.backward()
        gradients.append([p.grad for p in model.parameters()])
    for kept, recomputed in zip(*gradients, strict=True):
        torch.testing.assert_close(kept, recomputed)


class Broken(nn.Module):
    """A user's module that returns a mean instead of sums."""

    def __init__(self, returns: str = "mean") -> None:
        super().__init__()
        self.returns = returns
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, batch: dict[str, torch.Tensor]) -> object:
        if self.returns == "raise":
            raise RuntimeError("shapes cannot be multiplied (4x3 and 5x1)")
        if self.returns == "random":  # noise in evaluation too
            return Scored(torch.rand(()), torch.tensor(6), None)
        loss = (batch["x"].flatten(1)[:, :3] @ self.weight) ** 2
        return {"mean": loss.mean(), "vector": Scored(loss, loss.new_tensor(6), None)}[self.returns]


def not_a_module() -> str:
    return "x"


def frozen() -> nn.Module:
    return nn.Linear(2, 2).requires_grad_(False)


@pytest.mark.parametrize(
    ("factory", "args", "message"),
    [
        ("mpl", {}, "Did you mean `mlp`"),
        ("mlp", {"hiden": 3}, "unexpected keyword argument 'hiden'"),
        ("gpt", {"width": 10, "heads": 4}, "width = 10 does not divide by heads = 4"),
        ("no_such_package.models:build", {}, "no module named no_such_package"),
        ("trainer.models.mlp:Mlpp", {}, "Did you mean `Mlp`"),
    ],
)
def test_a_model_that_cannot_be_built_is_an_error_for_a_person(
    factory: str, args: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError) as told:
        build(factory, args)
    assert message in str(told.value)
    assert len(str(told.value).splitlines()) <= 3


@pytest.mark.parametrize(("made", "message"), [(not_a_module, "returned str"), (frozen, "no parameter requires")])
def test_a_factory_that_returns_something_else_is_refused(
    made: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.models.mlp.brought", made, raising=False)
    with pytest.raises(ModelError, match=message):
        build("trainer.models.mlp:brought", {})


@pytest.mark.parametrize(
    ("returns", "message"),
    [("mean", "returned Tensor, expected Scored"), ("vector", r"loss_sum is shape \[6\]"), ("raise", "shapes cannot")],
)
def test_a_probe_finds_a_module_that_does_not_train(returns: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        probe(Broken(returns), IMAGES)


def test_a_probe_leaves_the_model_and_the_random_state_as_they_were() -> None:
    model = Broken("random")
    before = torch.random.get_rng_state()
    probe(model, IMAGES)
    assert model.training
    assert torch.equal(before, torch.random.get_rng_state())


def test_data_of_another_kind_is_named() -> None:
    with pytest.raises(DataError, match="model gpt reads the field `tokens`, the data has x, y"):
        probe(build("gpt", SMALL_GPT), IMAGES)


def test_sequences_longer_than_the_context_are_refused() -> None:
    with pytest.raises(DataError, match="context = 16, the data's sequences predict 32 tokens"):
        probe(build("gpt", SMALL_GPT), {"tokens": torch.zeros(1, 33, dtype=torch.int64)})
