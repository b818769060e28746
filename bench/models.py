"""The models of the comparison: our small GPT, and BERT and ResNet as `transformers` builds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models import build
from trainer.models.scored import Batch, Scored


class Classifier(nn.Module):
    """A model of `transformers` whose forward gives logits, as a model that gives sums."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, batch: Batch) -> Scored:
        inputs = {name: value for name, value in batch.items() if name != "label"}
        logits = self.inner(**inputs).logits
        loss = functional.cross_entropy(logits, batch["label"], reduction="sum")
        return Scored(loss, torch.tensor(logits.shape[0], device=logits.device), None)


def tiny_bert(layers: int = 4, width: int = 192, vocabulary: int = 1024) -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=4 * width,
        max_position_embeddings=128,
        num_labels=4,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return Classifier(BertForSequenceClassification(config))


def small_resnet() -> nn.Module:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(
        num_channels=3,
        embedding_size=16,
        hidden_sizes=[16, 32, 64],
        depths=[2, 2, 2],
        layer_type="basic",
        num_labels=10,
    )
    return Classifier(ResNetForImageClassification(config))


@dataclass(frozen=True)
class Subject:
    """A model and made-up samples for it. micro_batch × accum_steps: chosen so that a step takes 50 ms or more."""

    factory: str
    args: Mapping[str, Any]
    micro_batch: int
    accum_steps: int
    fields: Mapping[str, tuple[tuple[int, ...], int]]  # name -> (shape of a sample, classes; 0 for real numbers)


SUBJECTS = {
    "tiny-gpt": Subject("gpt", {"context": 64, "width": 128, "layers": 3}, 4, 4, {"tokens": ((65,), 256)}),
    "tiny-bert": Subject("bench.models:tiny_bert", {}, 4, 4, {"input_ids": ((48,), 1024), "label": ((), 4)}),
    "small-resnet": Subject(
        "bench.models:small_resnet", {}, 8, 4, {"pixel_values": ((3, 32, 32), 0), "label": ((), 10)}
    ),
}


class MadeUp:
    """Samples that follow from a seed; held in memory, so that reading costs every contestant the same little."""

    def __init__(self, subject: Subject, samples: int = 512) -> None:
        generator = torch.Generator().manual_seed(11)
        self._table: dict[str, Tensor] = {}
        for name, (shape, classes) in subject.fields.items():
            size = (samples, *shape)
            whole = torch.randint(classes or 2, size, generator=generator)
            self._table[name] = whole if classes else torch.randn(size, generator=generator)
        self._samples = samples

    def __len__(self) -> int:
        return self._samples

    def batch(self, ids: Sequence[int]) -> dict[str, Tensor]:
        rows = torch.tensor(list(ids))
        return {name: table[rows] for name, table in self._table.items()}


def model_of(subject: Subject) -> nn.Module:
    torch.manual_seed(0)
    return build(subject.factory, dict(subject.args))
