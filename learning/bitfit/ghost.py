"""Per-example gradient norms of weights without the gradients (ghost clipping).

Goodfellow, "Efficient per-example gradient computations" (2015); Li et al., "Large language models
can be strong differentially private learners" (2022), section 4: for a linear layer the squared norm
is the inner product of two T x T Gram matrices. Where the weight is smaller than these, the gradient
of one example at a time is cheaper and is written out instead.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from learning.bitfit.layers import as_matrices


@contextmanager
def full_precision() -> Iterator[None]:
    """Take products of fp32 matrices in fp32, not in TF32 or bf16.

    A GPU convolves in TF32 unless told otherwise. The gradients that are summed come from another
    pass than the norms that they are scaled by; rounded to 10 bits, they would exceed the bound.
    """
    backends: Any = torch.backends
    kinds = (
        backends.cuda.matmul,
        backends.cudnn.conv,
        backends.mkldnn.matmul,
        backends.mkldnn.conv,
    )
    before = [kind.fp32_precision for kind in kinds]
    try:
        for kind in kinds:
            kind.fp32_precision = "ieee"
        yield
    finally:
        for kind, precision in zip(kinds, before, strict=True):
            kind.fp32_precision = precision


def squared_norms(module: nn.Module, uses: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Squared norm of each example's weight gradient.

    Args:
        module: Linear, Conv1D, Conv2d or Embedding.
        uses: (input, output gradient) of every call in this batch. Calls add up, so their positions
            are joined before the norm is taken.

    Returns:
        ``(B,)``, and what rounding may have taken from it ``(B,)``: where positions nearly cancel, that
        could hide most of a norm.
    """
    pairs = [as_matrices(module, x, grad) for x, grad in uses]
    inputs = torch.cat([x for x, _ in pairs], 1) if len(pairs) > 1 else pairs[0][0]
    grads = torch.cat([g for _, g in pairs], 1) if len(pairs) > 1 else pairs[0][1]
    if isinstance(module, nn.Embedding):
        same = inputs[:, :, None] == inputs[:, None, :]
        squares = (same * (grads @ grads.transpose(1, 2))).sum((1, 2))
        return _with_error(squares, grads.norm(dim=2))
    lengths = inputs.norm(dim=2) * grads.norm(dim=2)
    positions = inputs.shape[1]
    if 2 * positions * positions <= inputs.shape[2] * grads.shape[2]:
        gram_in = inputs @ inputs.transpose(1, 2)
        gram_out = grads @ grads.transpose(1, 2)
        return _with_error((gram_in * gram_out).sum((1, 2)), lengths)
    one_by_one = [(g.T @ x).square().sum() for x, g in zip(inputs, grads, strict=True)]
    return _with_error(torch.stack(one_by_one), lengths)


def _with_error(squares: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Bound the rounding of a sum whose terms have the norms ``lengths`` ``(B, T)``."""
    return squares.clamp(min=0), 8 * torch.finfo(squares.dtype).eps * lengths.sum(1).square()
