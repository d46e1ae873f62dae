"""Hooks that collect per-example gradients while autograd runs.

Biases: a full backward pre-hook sees the gradient of the layer's output and nothing else; no forward
hook, no stored activation. Weights (head, full fine-tuning): a forward hook hands the layer's input
to a hook on this very output, so that input and gradient of one call stay together.

What is stored is one matrix ``(B, P)`` for all written-out parameters, so that norms, clipping and
the sum are one operation each.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from learning.bitfit.errors import PrivacyError
from learning.bitfit.ghost import squared_norms
from learning.bitfit.layers import bias_rule, norm_weight_rule, weight_gradient
from learning.bitfit.select import Trained, Use


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what torch says of the first layer of a frozen model: no input needs a gradient."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Full backward hook is firing when")
        yield


class Capture:
    """Per-example gradients of one microbatch.

    Args:
        trained: What to collect.
        dtype: Type of the stored gradients: fp32, or fp64 for fp64 models.
        device: Where the model is.
    """

    def __init__(
        self, trained: Sequence[Trained], dtype: torch.dtype, device: torch.device
    ) -> None:
        self._names = {id(item.parameter): item.name for item in trained}
        self._slots: dict[int, slice] = {}
        width = 0
        for item in trained:
            if item.written_out:
                end = width + item.parameter.numel()
                self._slots[id(item.parameter)] = slice(width, end)
                width = end
        self._buffer = torch.zeros(0, width, dtype=dtype, device=device)
        self._ghost: tuple[Tensor, Tensor] | None = None
        self._written: set[int] = set()
        self._seen: set[int] = set()
        self._calls: dict[int, int] = {}
        self._pending: dict[int, list[tuple[Tensor, Tensor]]] = {}
        self._rows = 0
        self._recording = False
        self._trained = trained
        self.on_outputs = False
        self._ends: dict[int, nn.Parameter] = {}
        self._handles = [self._install(item, use) for item in trained for use in item.uses]

    @property
    def gradients(self) -> Tensor:
        """``(B, P)`` per-example gradients of the written-out parameters of the last recording."""
        return self._buffer[: self._rows]

    def slot(self, parameter: nn.Parameter) -> slice:
        """Columns of a written-out parameter in `gradients`."""
        return self._slots[id(parameter)]

    def norms(self, *, rounding: Literal[-1, 1] = 1) -> Tensor:
        """Norm of each example's gradient over everything trained, ``(B,)``.

        Args:
            rounding: 1 adds what rounding may have taken from ghost norms, -1 leaves out what it may
                have added.
        """
        total: Tensor = torch.linalg.vector_norm(self.gradients, dim=1).square()
        if self._ghost is not None:
            squares, errors = self._ghost
            total = (total + squares + rounding * errors).clamp(min=0)
        return total.sqrt()

    def begin_forward(self) -> None:
        """Forget the calls of earlier forward passes."""
        self._calls.clear()
        self._pending.clear()
        self._ends.clear()

    def hook_outputs(self) -> None:
        """Hook the outputs of layers themselves from now on: those may be changed in place."""
        self.close()
        self.on_outputs = True
        self.begin_forward()
        self._handles = [self._install(item, use) for item in self._trained for use in item.uses]

    @property
    def ends(self) -> list[nn.Parameter]:
        """Weights whose gradient is only stored as a norm, of layers at the beginning of the graph."""
        return list(self._ends.values())

    @contextmanager
    def recording(self, size: int) -> Iterator[None]:
        """Record the backward pass inside.

        Raises:
            PrivacyError: A gradient does not have ``size`` rows, or a trained parameter had none.
        """
        if self._buffer.shape[0] < size:
            self._buffer = self._buffer.new_empty(size, self._buffer.shape[1])
        self._rows, self._ghost, self._recording = size, None, True
        self._written.clear()
        self.gradients.zero_()
        try:
            with quiet():
                yield
        finally:
            self._recording = False
        self._refuse_missing()

    def close(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def _refuse_missing(self) -> None:
        # One that was used before and has no gradient of autograd's now was left out (layerdrop).
        left_out = {
            id(item.parameter)
            for item in self._trained
            if item.written_out and item.parameter.grad is None and id(item.parameter) in self._seen
        }
        self._seen |= self._written
        there = self._written | left_out
        missing = [name for key, name in self._names.items() if key not in there]
        if missing:
            raise PrivacyError(
                "no per-example gradient arrived for "
                + ", ".join(missing[:10])
                + ". The layer was not used (set a layerdrop to 0), or its input was cut off from the "
                "graph (reentrant gradient checkpointing needs model.enable_input_require_grads()). "
                "Keep it frozen with exclude=[pattern]"
            )

    def _install(self, item: Trained, use: Use) -> RemovableHandle:
        if use.kind == "bias":
            hook = self._bias_hook(item)
            if self.on_outputs:
                return use.module.register_forward_hook(_on_output(hook))
            return use.module.register_full_backward_pre_hook(hook)
        return use.module.register_forward_hook(self._forward_hook(item, use), with_kwargs=True)

    def _bias_hook(self, item: Trained) -> Callable[[nn.Module, Any], None]:
        def hook(module: nn.Module, grad_output: Any) -> None:
            if self._recording:
                grad = self._checked(grad_output[0], item)
                rule = bias_rule(module)
                assert rule is not None  # noqa: S101  (chosen by select)
                self._add(item, rule(module, grad))

        return hook

    def _forward_hook(self, item: Trained, use: Use) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any, output: Tensor) -> None:
            if not isinstance(output, Tensor):
                raise PrivacyError(
                    f"{use.layer} returns more than one tensor; keep {item.name} frozen with "
                    "exclude=[pattern]"
                )
            if not (torch.is_grad_enabled() and output.requires_grad):
                return
            if self._recording and not item.written_out:
                return  # checkpointing computes it once more; the gradient comes to the first output
            given = args[0] if args else next(iter(kwargs.values()))
            x, key = given.detach(), id(item.parameter)
            if not (item.written_out or given.requires_grad):
                self._ends[key] = item.parameter
            self._calls[key] = self._calls.get(key, 0) + 1
            output.register_hook(  # type: ignore[no-untyped-call]
                lambda grad: self._weight(item, use, x, grad)
            )

        return hook

    def _weight(self, item: Trained, use: Use, x: Tensor, grad: Tensor) -> None:
        if not self._recording:
            return
        grad = self._checked(grad, item).to(self._buffer.dtype)
        if x.is_floating_point():
            x = x.to(self._buffer.dtype)
        if x.shape[0] != grad.shape[0]:
            raise PrivacyError(f"the input of {use.layer} is broadcast over the batch; expand it")
        if not item.written_out:
            self._ghost_norm(item, use, x, grad)
        elif use.kind == "scale":
            rule = norm_weight_rule(use.module)
            assert rule is not None  # noqa: S101  (chosen by select)
            self._add(item, rule(use.module, x, grad))
        else:
            self._add(item, weight_gradient(use.module, x, grad))

    def _ghost_norm(self, item: Trained, use: Use, x: Tensor, grad: Tensor) -> None:
        """The norm of a sum over several calls needs all of them."""
        key = id(item.parameter)
        uses = self._pending.setdefault(key, [])
        uses.append((x, grad))
        if len(uses) < self._calls[key]:
            return
        del self._pending[key]
        if key in self._written:
            raise PrivacyError(f"{item.name} had two per-example gradients in one backward pass")
        squares, errors = squared_norms(use.module, uses)
        if self._ghost is not None:
            squares, errors = squares + self._ghost[0], errors + self._ghost[1]
        self._ghost = squares, errors
        self._written.add(key)

    def _add(self, item: Trained, gradient: Tensor) -> None:
        key = id(item.parameter)
        if gradient.shape[1:].numel() != item.parameter.numel():
            raise PrivacyError(
                f"the layer of {item.name} does not work over the last dimension as its class does; "
                "keep it frozen with exclude=[pattern]"
            )
        self.gradients[:, self._slots[key]] += gradient.reshape(self._rows, -1)
        self._written.add(key)

    def _checked(self, grad: Tensor | None, item: Trained) -> Tensor:
        if grad is None or grad.ndim == 0 or grad.shape[0] != self._rows:
            shape = None if grad is None else tuple(grad.shape)
            raise PrivacyError(
                f"the layer of {item.name} saw a gradient of shape {shape} in a batch of "
                f"{self._rows} examples: its input is broadcast or flattened over the batch, so that "
                "examples cannot be told apart. Give it inputs of shape (batch, ...), or keep it frozen "
                "with exclude=[pattern]; for Hugging Face position embeddings pass position_ids of "
                "shape (batch, length)"
            )
        return grad


def _on_output(hook: Callable[[nn.Module, Any], None]) -> Callable[..., Any]:
    def forward(module: nn.Module, args: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        if torch.is_grad_enabled() and first.requires_grad:
            first.register_hook(lambda grad: hook(module, (grad,)))
            # What changes a view in place takes the view, and its hook, out of the graph.
            if first is output and first._is_view():
                return first.clone()
        return None

    return forward
