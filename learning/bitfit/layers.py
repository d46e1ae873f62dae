"""Which layers have per-example gradients in closed form, and the formulas.

Bias: the gradient of example i is the sum of the output gradient over every position (Bu et al.,
"Differentially Private Bias-Term Fine-tuning of Foundation Models", section 3.2): no activation
enters. Weights of classification heads and of full fine-tuning need the layer's input as well.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from learning.bitfit.errors import PrivacyError

Rule = Callable[[nn.Module, Tensor], Tensor]
WeightRule = Callable[[nn.Module, Tensor, Tensor], Tensor]

# Leaf names of the parameters that a rule covers.
BIAS_NAMES: Final = ("bias", "added_bias")

_CONVOLUTIONS: Final = {
    nn.Conv1d: 1,
    nn.Conv2d: 2,
    nn.Conv3d: 3,
    nn.ConvTranspose1d: 1,
    nn.ConvTranspose2d: 2,
    nn.ConvTranspose3d: 3,
}
BATCH_NORMS: Final = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type in which sums are taken: fp32, or fp64 for fp64."""
    return torch.promote_types(dtype, torch.float32)


def over_positions(grad: Tensor, kept: int) -> Tensor:
    """Sum ``(B, ..., *kept)`` over everything between the batch and the last ``kept`` dimensions."""
    if grad.ndim < kept + 1:
        raise PrivacyError("a layer was called without a batch dimension; pass (batch, ...) inputs")
    middle = tuple(range(1, grad.ndim - kept))
    return grad.sum(middle, dtype=wide(grad.dtype)) if middle else grad


def over_space(grad: Tensor) -> Tensor:
    """Sum ``(B, channels, ...)`` over the dimensions after the channels."""
    return grad.flatten(2).sum(2, dtype=wide(grad.dtype)) if grad.ndim > 2 else grad


def _last(_: nn.Module, grad: Tensor) -> Tensor:
    return over_positions(grad, 1)


def _normalized(module: nn.Module, grad: Tensor) -> Tensor:
    return over_positions(_last_normalized(module, grad), len(normalized_shape(module)))


def _last_normalized(module: nn.Module, x: Tensor) -> Tensor:
    """Bring ConvNeXt's ``(B, channels, ...)`` to the order of every other LayerNorm."""
    if getattr(module, "data_format", None) == "channels_first":
        return x.movedim(1, -1)
    return x


def _channels(module: nn.Module, grad: Tensor) -> Tensor:
    spatial = next((n for kind, n in _CONVOLUTIONS.items() if isinstance(module, kind)), None)
    if grad.ndim < 2 or (spatial is not None and grad.ndim != spatial + 2):
        raise PrivacyError("a layer was called without a batch dimension; pass (batch, ...) inputs")
    return over_space(grad)


def is_conv1d(module: nn.Module) -> bool:
    """Is this Hugging Face's ``Conv1D``, a linear layer with a transposed weight (GPT-2)?"""
    return any(
        kind.__name__ == "Conv1D" and kind.__module__ == "transformers.pytorch_utils"
        for kind in type(module).__mro__
    )


def is_rms_norm(module: nn.Module) -> bool:
    """Torch's RMSNorm or one of the many classes of that name (or T5's) over the last dimension."""
    return isinstance(module, nn.RMSNorm) or any(
        kind.__name__.endswith(("RMSNorm", "T5LayerNorm")) for kind in type(module).__mro__
    )


def normalized_shape(module: nn.Module) -> tuple[int, ...]:
    """Trailing dimensions over which a LayerNorm or RMSNorm works."""
    shape = getattr(module, "normalized_shape", None)
    if shape is None:
        shape = module.get_parameter("weight").shape
    return tuple(shape)


def bias_rule(module: nn.Module) -> Rule | None:
    """The formula for the bias of ``module``: ``(module, (B, ...)) -> (B, *bias.shape)``."""
    if isinstance(module, nn.Linear) or is_conv1d(module):
        return _last
    if isinstance(module, nn.LayerNorm) or is_rms_norm(module):
        return _normalized
    if isinstance(module, (nn.GroupNorm, *_CONVOLUTIONS, *BATCH_NORMS)):
        return _channels
    return None


def is_matrix(module: nn.Module) -> bool:
    """Does the weight of this layer enter as a matrix product or a table?"""
    if isinstance(module, nn.Conv2d):
        plain = module.padding_mode == "zeros" and not isinstance(module.padding, str)
        return module.groups == 1 and plain
    return isinstance(module, (nn.Linear, nn.Embedding)) or is_conv1d(module)


def norm_weight_rule(module: nn.Module) -> WeightRule | None:
    """The formula for the scale of a normalisation layer: ``(module, input, grad) -> (B, *shape)``."""
    if isinstance(module, nn.LayerNorm):
        return _layer_norm_scale
    if isinstance(module, nn.GroupNorm):
        return _group_norm_scale
    if is_rms_norm(module):
        return _rms_norm_scale
    return None


def _layer_norm_scale(module: nn.Module, x: Tensor, grad: Tensor) -> Tensor:
    shape = normalized_shape(module)
    x, grad = _last_normalized(module, x), _last_normalized(module, grad)
    unit = F.layer_norm(x, shape, None, None, _epsilon(module, x))
    return over_positions(grad * unit, len(shape))


def _group_norm_scale(module: nn.Module, x: Tensor, grad: Tensor) -> Tensor:
    groups: Any = module.num_groups
    return over_space(grad * F.group_norm(x, groups, None, None, _epsilon(module, x)))


def _rms_norm_scale(module: nn.Module, x: Tensor, grad: Tensor) -> Tensor:
    shape = normalized_shape(module)
    unit = F.rms_norm(x, shape, None, _epsilon(module, x))
    return over_positions(grad * unit, len(shape))


def _epsilon(module: nn.Module, x: Tensor) -> float:
    value = getattr(module, "eps", getattr(module, "variance_epsilon", None))
    return torch.finfo(x.dtype).eps if value is None else float(value)


def as_matrices(module: nn.Module, x: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Bring a layer's input and output gradient to ``(B, T, in)`` and ``(B, T, out)``.

    An embedding's input stays an index: ``(B, T)``.
    """
    if isinstance(module, nn.Conv2d):
        unfolded = F.unfold(
            x, module.kernel_size, module.dilation, _pair(module.padding), module.stride
        )
        return unfolded.transpose(1, 2), grad.flatten(2).transpose(1, 2)
    positions = math.prod(grad.shape[1:-1])
    grad = grad.reshape(grad.shape[0], positions, grad.shape[-1])
    if isinstance(module, nn.Embedding):
        if module.padding_idx is not None:  # autograd leaves this row alone
            keep = (x != module.padding_idx).reshape(x.shape[0], positions, 1)
            grad = grad * keep
        return x.reshape(x.shape[0], positions), grad
    return x.reshape(x.shape[0], positions, x.shape[-1]), grad


def _pair(padding: Any) -> tuple[int, int]:
    first, second = padding
    return int(first), int(second)


def weight_gradient(module: nn.Module, x: Tensor, grad: Tensor) -> Tensor:
    """Per-example weight gradient, written out.

    Args:
        module: Linear, Conv1D or Conv2d.
        x: Layer input ``(B, ..., in)``.
        grad: Output gradient ``(B, ..., out)``.

    Returns:
        ``(B, *weight.shape)``.
    """
    inputs, outputs = as_matrices(module, x, grad)
    if is_conv1d(module):
        return torch.einsum("bti,bto->bio", inputs, outputs)
    flat = torch.einsum("bto,bti->boi", outputs, inputs)
    return flat.reshape(flat.shape[0], *module.get_parameter("weight").shape)
