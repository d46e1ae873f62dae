"""Losses of one value per example, each a function of that example alone."""

from collections.abc import Callable, Mapping

from torch import Tensor, nn
from torch.nn import functional as F

Batch = Mapping[str, Tensor]
Loss = Callable[[nn.Module, Batch], Tensor]

IGNORED = -100


def classification_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Cross entropy of a sequence classifier.

    Args:
        model: Called with every entry but ``labels``; returns an object with ``logits`` ``(B, classes)``.
        batch: Tensors whose first dimension is the example, with ``labels`` ``(B,)``.

    Returns:
        ``(B,)``, fp32.
    """
    logits = model(**_inputs(batch)).logits
    return F.cross_entropy(logits.float(), batch["labels"], reduction="none")


def causal_lm_loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean next-token cross entropy over each example's own tokens.

    Args:
        model: Returns an object with ``logits`` ``(B, T, vocabulary)``.
        batch: With ``labels`` ``(B, T)``; -100 marks what is not predicted.

    Returns:
        ``(B,)``, fp32; 0 for an example without a predicted token.
    """
    logits = model(**_inputs(batch)).logits[:, :-1].float()
    labels = batch["labels"][:, 1:]
    losses = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none", ignore_index=IGNORED)
    return losses.sum(1) / (labels != IGNORED).sum(1).clamp(min=1)


def _inputs(batch: Batch) -> dict[str, Tensor]:
    return {name: value for name, value in batch.items() if name != "labels"}
