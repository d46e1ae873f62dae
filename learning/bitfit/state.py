"""What a model must leave alone while it reads a batch: its parameters and buffers.

Running statistics, embeddings with ``max_norm`` and the like keep something of every example that they
saw. It reaches the gradients of later examples, and the result, without clipping and without noise.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from learning.bitfit.errors import PrivacyError


class State:
    """The parameters and buffers that ``model`` has now."""

    def __init__(self, model: nn.Module) -> None:
        self._places = [
            (kept, key, f"{name}.{key}".lstrip("."))
            for name, module in model.named_modules()
            for kept in (module._parameters, module._buffers)
            for key, value in kept.items()
            if value is not None
        ]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Raise PrivacyError when what is inside changes one of them.

        A buffer that gets another shape is a table that grows with the length of a batch, not a state.
        """
        before = [_seen(kept.get(key)) for kept, key, _ in self._places]
        yield
        for (kept, key, name), (old, version) in zip(self._places, before, strict=True):
            if _changed(old, version, kept.get(key)):
                raise PrivacyError(
                    f"{name} changes while the model reads a batch, so that it keeps something of "
                    "every example without noise. Call .eval() on its layer after model.train(), or "
                    "build the layer without running statistics (an Embedding without max_norm)"
                )


def _seen(value: Tensor | None) -> tuple[Tensor | None, int]:
    return value, 0 if value is None else value._version


def _changed(old: Tensor | None, version: int, new: Tensor | None) -> bool:
    if old is None or new is None:
        return False
    if new is old:
        return new._version != version
    return new.shape == old.shape and not torch.equal(new, old)
