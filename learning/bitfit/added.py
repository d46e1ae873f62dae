"""DP-BiTFiT-Add: biases for layers that have none (Bu et al., appendix on bias-free models).

The layer keeps its class, its name and its parameters: a subclass made on the fly adds
``added_bias``, zero at first, to what the layer returns. Outputs at the start are therefore equal, and
taking the bias away gives back the very same model.
"""

from typing import Any

import torch
from torch import Tensor, nn

from learning.bitfit.errors import PrivacyError
from learning.bitfit.layers import is_conv1d, is_rms_norm, normalized_shape


class AddedBias:
    """Mixin in front of a layer class: the output plus a trainable bias."""

    added_bias: nn.Parameter

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        output: Tensor = super().forward(*args, **kwargs)  # type: ignore[misc]
        return output + self.added_bias.to(output.dtype)


def add_biases(model: nn.Module, *, norms: bool = True) -> list[str]:
    """Give every Linear (and RMSNorm or LayerNorm) without a bias a zero bias, in place.

    Args:
        model: Any model. Output layers tied to an embedding get one as well.
        norms: Also the normalisation layers.

    Returns:
        Names of the changed layers, in definition order.

    Raises:
        PrivacyError: Every such layer already has a bias.
    """
    changed = lacking(model, norms=norms)
    if not changed:
        raise PrivacyError("every layer has a bias already; use DP-BiTFiT without added biases")
    add_biases_to(model, changed)
    return changed


def lacking(model: nn.Module, *, norms: bool = True) -> list[str]:
    """Names of the layers that `add_biases` would give a bias."""
    return [name for name, layer in model.named_modules() if _lacks_bias(layer, norms)]


def add_biases_to(model: nn.Module, names: list[str]) -> None:
    """Give the named layers a zero bias, in place (`add_biases` of an earlier run)."""
    for name in names:
        layer = model.get_submodule(name)
        kind = type(layer)
        if issubclass(kind, AddedBias):
            continue
        weight = layer.get_parameter("weight")
        size = tuple(normalized_shape(layer)) if not _is_linear(layer) else (_width(layer),)
        bias = torch.zeros(size, dtype=weight.dtype, device=weight.device)
        layer.__class__ = type(f"{kind.__name__}WithAddedBias", (AddedBias, kind), {})
        layer.register_parameter("added_bias", nn.Parameter(bias))


def remove_biases(model: nn.Module) -> list[str]:
    """Undo `add_biases`; returns the names of the layers that had an added bias."""
    changed = [name for name, layer in model.named_modules() if isinstance(layer, AddedBias)]
    for name in changed:
        layer = model.get_submodule(name)
        del layer._parameters["added_bias"]
        layer.__class__ = type(layer).__mro__[2]
    return changed


def _is_linear(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Linear) or is_conv1d(layer)


def _width(layer: nn.Module) -> int:
    weight = layer.get_parameter("weight")
    return weight.shape[1] if is_conv1d(layer) else weight.shape[0]


def _lacks_bias(layer: nn.Module, norms: bool) -> bool:
    if getattr(layer, "bias", None) is not None or isinstance(layer, AddedBias):
        return False
    is_norm = isinstance(layer, nn.LayerNorm) or is_rms_norm(layer)
    return _is_linear(layer) or (norms and is_norm and getattr(layer, "weight", None) is not None)
