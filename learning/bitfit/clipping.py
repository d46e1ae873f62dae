"""Clipping functions: how much of an example's gradient goes into the sum."""

from collections.abc import Callable
from typing import Final, Literal, get_args

import torch
from torch import Tensor

Clipping = Literal["abadi", "automatic", "normalised"]
CLIPPINGS: Final[tuple[str, ...]] = get_args(Clipping)

# Below and above, what is clipped would underflow or overflow in fp32, and the bound with it.
SMALLEST_NORM: Final = 1e-12
LARGEST_NORM: Final = 1e12
# Keeps the rounding of a norm summed in fp32 inside the bound.
_ROUNDING: Final = 1.0 - 2.0**-18
# Bu et al., "Automatic Clipping" (2023), section 3.2.
_STABILITY: Final = 0.01


def _abadi(norms: Tensor, bound: float) -> Tensor:
    return (bound / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1.0)


def _automatic(norms: Tensor, bound: float) -> Tensor:
    return bound / (norms + _STABILITY)


def _normalised(norms: Tensor, bound: float) -> Tensor:
    smallest = torch.finfo(norms.dtype).tiny * max(1.0, bound) * 4
    return torch.where(norms > smallest, bound / norms.clamp(min=smallest), 0.0)


_FUNCTIONS: Final[dict[str, Callable[[Tensor, float], Tensor]]] = {
    "abadi": _abadi,
    "automatic": _automatic,
    "normalised": _normalised,
}


def factors(norms: Tensor, bound: float, clipping: Clipping) -> Tensor:
    """Factors that bring every example's gradient to a norm of at most ``bound``.

    ``abadi``: min(1, R/n) (Abadi et al. 2016). ``automatic``: R/(n + 0.01) (Bu et al. 2023).
    ``normalised``: R/n. An example whose norm is not finite gets 0.

    Args:
        norms: Per-example norms ``(B,)``, fp32 or fp64.
        bound: Clipping norm R, also the sensitivity of the sum under add/remove.
        clipping: Which function.

    Returns:
        ``(B,)``.
    """
    scale = _FUNCTIONS[clipping](norms, bound) * _ROUNDING
    return torch.where(torch.isfinite(norms), scale, 0.0)
