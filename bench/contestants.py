"""Four ways to train the same windows: ours, a bare PyTorch loop, Accelerate, Lightning Fabric.

Each does what its documentation shows for gradient accumulation with clipping, and reads the loss once a step. Ours has
history, metrics, status, and checkpoints on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from bench.models import MadeUp, Subject, model_of
from bench.turns import Gate
from trainer.config import Run
from trainer.data.course import EpochCourse
from trainer.data.order import Order
from trainer.drain import Drain
from trainer.evaluate import OnHeldOut
from trainer.metrics.lines import MetricLines
from trainer.metrics.memory import ResidentMemory
from trainer.metrics.window import WindowMeter
from trainer.records.history import History
from trainer.records.status import Status, StatusFile
from trainer.run import Setup, conduct
from trainer.settings.inforce import InForce
from trainer.settings.live import AsTheyAre
from trainer.sync.place import Place
from trainer.sync.solo import SoloExchange
from trainer.watch import Sinks, Watch

LR, CLIP, EPOCHS = 1e-4, 1.0, 1 << 20
Contestant = Callable[[Gate], None]


def ours(subject: Subject, folder: Path) -> Contestant:
    class Gated(AsTheyAre):
        """Lets the others have their turn where the loop asks for new settings, once a window."""

        def __init__(self, gate: Gate) -> None:
            self._gate = gate

        def look(self, inforce: InForce, step: int) -> int:
            self._gate()
            return 0

    def train(gate: Gate) -> None:
        samples = MadeUp(subject)
        run = Run.model_validate(
            {
                "epochs": EPOCHS,
                "accumulation": {"accum_steps": subject.accum_steps, "micro_batch": subject.micro_batch},
                "optimizer": {"kind": "adamw", "lr": LR, "weight_decay": 0.01},
                "clip_grad_norm": CLIP,
                "evaluate": {"every_steps": EPOCHS},
            }
        )
        setup = Setup(
            run=run,
            host="bench",
            place=Place(),
            folder=folder,
            model=model_of(subject),
            samples=samples,
            course=EpochCourse(Order(0, len(samples)), EPOCHS),
            evaluator=OnHeldOut(samples, 64),
            desired=Gated(gate),
        )
        status = Status(host="bench", rank=0, t=0.0)
        with History(folder / "history" / "bench-0.jsonl", "bench", 0) as history:
            sinks = Sinks(history, StatusFile(folder, "bench", 0), MetricLines(folder / "metrics" / "bench-0.jsonl"))
            conduct(setup, SoloExchange(), Watch(sinks, WindowMeter(ResidentMemory()), Drain(), status))

    return train


def bare(subject: Subject, folder: Path) -> Contestant:
    def train(gate: Gate) -> None:
        model, micro_batches = model_of(subject).train(), _micro_batches(subject)
        optimizer = _adamw(model)
        while True:
            loss_sum = torch.zeros(())
            for _ in range(subject.accum_steps):
                loss = _mean(model, next(micro_batches)) / subject.accum_steps
                loss.backward()
                loss_sum += loss.detach()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad()
            loss_sum.item()
            gate()

    return train


def accelerate(subject: Subject, folder: Path) -> Contestant:
    from accelerate import Accelerator

    def train(gate: Gate) -> None:
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=subject.accum_steps)
        plain = model_of(subject).train()
        model, optimizer = accelerator.prepare(plain, _adamw(plain))
        micro_batches = _micro_batches(subject)
        while True:
            loss_sum = torch.zeros(())
            for _ in range(subject.accum_steps):
                with accelerator.accumulate(model):
                    loss = _mean(model, next(micro_batches))
                    accelerator.backward(loss)
                    loss_sum += loss.detach()
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), CLIP)
                    optimizer.step()
                    optimizer.zero_grad()
            loss_sum.item()
            gate()

    return train


def fabric(subject: Subject, folder: Path) -> Contestant:
    from lightning_fabric import Fabric

    def train(gate: Gate) -> None:
        runner = Fabric(accelerator="cpu", devices=1)
        plain = model_of(subject).train()
        model, optimizer = runner.setup(plain, _adamw(plain))
        micro_batches = _micro_batches(subject)
        while True:
            loss_sum = torch.zeros(())
            for index in range(subject.accum_steps):
                with runner.no_backward_sync(model, enabled=index < subject.accum_steps - 1):
                    loss = _mean(model, next(micro_batches)) / subject.accum_steps
                    runner.backward(loss)
                    loss_sum += loss.detach()
            runner.clip_gradients(model, optimizer, max_norm=CLIP)
            optimizer.step()
            optimizer.zero_grad()
            loss_sum.item()
            gate()

    return train


CONTESTANTS = {"ours": ours, "bare": bare, "accelerate": accelerate, "fabric": fabric}


def _adamw(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)


def _mean(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    scored = model(batch)
    return scored.loss_sum / scored.weight


def _micro_batches(subject: Subject) -> Iterator[dict[str, Tensor]]:
    samples = MadeUp(subject)
    order = Order(0, len(samples))
    for epoch in range(EPOCHS):
        for start in range(0, len(samples), subject.micro_batch):
            yield samples.batch(order.ids(epoch, range(start, start + subject.micro_batch)))
