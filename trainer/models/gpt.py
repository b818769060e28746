"""A small decoder-only transformer over bytes or tokens (Radford et al. 2019), written to be read.

Sizes in comments: B samples, T positions, C width, H heads, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from trainer.errors import DataError
from trainer.models.scored import Batch, Scored, score, take


class Attention(nn.Module):
    """Causal self-attention, [B, T, C] -> [B, T, C]."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        samples, length, width = x.shape
        q, k, v = self.qkv(x).view(samples, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)  # each [B, H, T, C/H]
        dropout = self.dropout if self.training else 0.0
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(samples, length, width))


class Block(nn.Module):
    """Attention and a two-layer perceptron, each beside the identity, normalised before."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.attention = Attention(width, heads, dropout)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.down(functional.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    """`tokens` [B, T+1] -> the loss of predicting each token from those before it.

    context: largest T. vocabulary: 256 for bytes. checkpoint_activations: keep only each block's input and compute the
    rest again in backward (arXiv:1604.06174): less memory, about a third more time.
    """

    def __init__(
        self,
        context: int = 128,
        width: int = 128,
        layers: int = 4,
        heads: int = 4,
        vocabulary: int = 256,
        dropout: float = 0.0,
        tie_weights: bool = True,
        checkpoint_activations: bool = False,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width = {width} does not divide by heads = {heads}")
        self.context, self.vocabulary, self.recompute = context, vocabulary, checkpoint_activations
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width, bias=False)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self._initialise(layers)
        if tie_weights:
            self.head.weight = self.tokens.weight

    def forward(self, batch: Batch) -> Scored:
        tokens = take(batch, "tokens", "gpt")
        if tokens.shape[1] - 1 > self.context:
            raise DataError(
                f"model gpt has context = {self.context}, the data's sequences predict {tokens.shape[1] - 1} tokens",
                f"Set model.args.context to {tokens.shape[1] - 1}, or pack shorter sequences (--sequence)",
            )
        logits = self.logits(tokens[:, :-1])
        # Every token is a prediction; counting the right ones costs a pass over [B, T, V], so only for evaluation.
        return score(logits, tokens[:, 1:], count_correct=not self.training)

    def logits(self, tokens: Tensor) -> Tensor:
        """[B, T] -> [B, T, V]; the row at t knows the tokens up to t."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.tokens(tokens) + self.positions(places))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute and self.training else block(x)
        return self.head(self.norm(x))

    def _initialise(self, layers: int) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
        for module in self.modules():  # the sum over 2 × layers residual branches keeps its variance
            if isinstance(module, Block):
                for last in (module.attention.out, module.down):
                    nn.init.normal_(last.weight, std=0.02 / (2 * layers) ** 0.5)
