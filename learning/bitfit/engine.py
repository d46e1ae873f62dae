"""The private step: clip each example once, sum, add noise once, divide by a constant.

Abadi et al., "Deep Learning with Differential Privacy" (2016), algorithm 1; for biases Bu et al.,
"Differentially Private Bias-Term Fine-tuning of Foundation Models", algorithm 1.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from learning.bitfit import checks
from learning.bitfit.capture import Capture, quiet
from learning.bitfit.clipping import (
    CLIPPINGS,
    LARGEST_NORM,
    SMALLEST_NORM,
    Clipping,
    factors,
)
from learning.bitfit.errors import PrivacyError
from learning.bitfit.ghost import full_precision
from learning.bitfit.losses import Batch, Loss
from learning.bitfit.noise import NoiseSource, SystemNoise
from learning.bitfit.select import Method, Trained, select
from learning.bitfit.state import State

Reduce = Callable[[Tensor], None]


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """The mechanism of one step.

    Attributes:
        noise_multiplier: Noise standard deviation over the clipping norm (sigma). 0 is not private.
        expected_batch: q N, the constant every noisy sum is divided by.
        max_grad_norm: Clipping norm R.
        clipping: Clipping function.
        autocast: Type of the forward pass under mixed precision, or None.

    Raises:
        ValueError: A number is out of range.
    """

    noise_multiplier: float
    expected_batch: float
    max_grad_norm: float = 1.0
    clipping: Clipping = "automatic"
    autocast: torch.dtype | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier >= 0):
            raise ValueError("noise_multiplier must be a number >= 0")
        for name in ("expected_batch", "max_grad_norm"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number > 0, not {value}")
        if not SMALLEST_NORM <= self.max_grad_norm <= LARGEST_NORM:
            raise ValueError(
                f"max_grad_norm must lie between {SMALLEST_NORM} and {LARGEST_NORM:g}: fp32 ends"
            )
        if self.clipping not in CLIPPINGS:
            raise ValueError(f"clipping must be one of {', '.join(CLIPPINGS)}")


class PrivateModel:
    """A model whose gradients are released only through the Gaussian mechanism.

    Made by `make_private`. Per logical batch: `accumulate` for every microbatch (none at all when the
    Poisson sample is empty), then `step` once.
    """

    def __init__(
        self,
        model: nn.Module,
        trained: list[Trained],
        settings: PrivacySettings,
        noise: NoiseSource,
        reduce: Reduce | None,
    ) -> None:
        self.model = model
        self.trained = trained
        self.settings = settings
        self._noise = noise
        self._reduce = reduce
        first = trained[0].parameter
        is_double = any(item.parameter.dtype == torch.float64 for item in trained)
        dtype = torch.float64 if is_double else torch.float32
        self._frozen = freeze_others(model, trained)
        self._capture = Capture(trained, dtype, first.device)
        self._width = sum(item.parameter.numel() for item in trained)
        self._sum = torch.zeros(self._width, dtype=dtype, device=first.device)
        self._skipped = torch.zeros((), dtype=torch.int64, device=first.device)
        self._mismatch = torch.zeros((), dtype=torch.bool, device=first.device)
        self._verified = 0  # examples that were compared, up to 2
        low = settings.autocast is not None or any(
            item.parameter.dtype in (torch.bfloat16, torch.float16) for item in trained
        )
        self._tolerance = 5e-2 if low else 1e-3
        self._probe = checks.Probe(model, self._capture, trained, self._forward, self._tolerance)
        self._state = State(model)
        self._ghost = [item for item in trained if not item.written_out]
        if self._ghost and low:
            raise PrivacyError(
                "ghost clipping needs fp32: in lower precision the norms are not those of the "
                "gradients that are summed"
            )
        if self._ghost and any(getattr(m, "_compiled_call_impl", None) for m in model.modules()):
            raise PrivacyError("ghost clipping runs back twice, which torch.compile does not allow")

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What an optimizer is to be built on."""
        return [item.parameter for item in self.trained]

    @property
    def skipped(self) -> int:
        """Examples left out so far because their gradient was not finite (not a private figure)."""
        return int(self._skipped)

    def per_example(self, loss: Loss, batch: Batch) -> dict[str, Tensor]:
        """Unclipped per-example gradients, for tests and audits: never to be released.

        Args:
            loss: One value per example.
            batch: Tensors of ``B`` examples.

        Returns:
            Name to ``(B, *shape)``, for the written-out parameters.
        """
        self._backward(loss, batch)
        rows = self._capture.gradients.clone()
        self._clear_gradients()
        return {
            item.name: rows[:, self._capture.slot(item.parameter)].reshape(
                -1, *item.parameter.shape
            )
            for item in self.trained
            if item.written_out
        }

    def per_example_norms(self, loss: Loss, batch: Batch) -> Tensor:
        """Unclipped norms ``(B,)`` over everything trained, for tests and audits."""
        self._backward(loss, batch)
        self._clear_gradients()
        return self._capture.norms()

    def accumulate(self, loss: Loss, batch: Batch) -> Tensor:
        """Add the clipped gradients of a microbatch to the sum of this step.

        Args:
            loss: ``(model, batch) -> (B,)``, each value a function of its own example.
            batch: Tensors of ``B`` examples; ``B`` may be 0.

        Returns:
            The losses ``(B,)``, detached. They are not private: do not release them.

        Raises:
            PrivacyError: The gradients of the examples cannot be told apart or do not add up.
        """
        size = checks.batch_size(batch)
        if size == 0:
            return torch.zeros(0, device=self._sum.device)
        if self._verified < min(size, 2):
            self._verify(loss, batch)
        losses = self._backward(loss, batch)
        norms = self._capture.norms()
        if self._ghost:
            finite = torch.isfinite(norms)
            if not bool(finite.all()):
                return self._without(loss, batch, finite, losses)
        scale = factors(norms, self.settings.max_grad_norm, self.settings.clipping)
        self._add_written(norms, scale)
        if self._ghost:
            self._add_ghost(losses, scale)
        self._clear_gradients()
        return losses.detach()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Release the noisy mean through one step of ``optimizer``; also after an empty batch.

        Raises:
            PrivacyError: A microbatch's per-example gradients did not add up to autograd's.
        """
        total = self._sum
        if self.settings.noise_multiplier > 0:
            # Drawn on the host while an accelerator still works; the check below waits for it.
            std = self.settings.noise_multiplier * self.settings.max_grad_norm
            total += std * self._noise.normal(self._width, total.device).to(total.dtype)
        if bool(self._mismatch):
            raise PrivacyError(
                "per-example gradients do not add up to the gradient of the batch: a trained "
                "parameter is also used outside its layer's forward. Exclude it from training"
            )
        if self._reduce is not None:
            self._reduce(total)
        total /= self.settings.expected_batch
        for item, value in zip(self.trained, self._split(total), strict=True):
            item.parameter.grad = value.to(item.parameter.dtype)
        optimizer.step()
        self._clear_gradients()
        self._sum.zero_()

    def close(self) -> None:
        """Remove every hook and give the frozen parameters their state back."""
        self._capture.close()
        for parameter, wanted in self._frozen:
            parameter.requires_grad_(wanted)

    def verify_padding(self, loss: Loss, batch: Batch, row: int, alone: Batch) -> bool:
        """Raise PrivacyError unless example ``row`` of a padded batch is to the model what it is alone.

        Returns:
            Whether that says anything: an example without a gradient is the same everywhere.
        """
        return checks.verify_padding(self._probe, loss, batch, row, alone)

    def _verify(self, loss: Loss, batch: Batch) -> None:
        # Examples that count nothing would say of the others that they cannot be told apart.
        self._backward(loss, batch)
        norms = self._capture.norms()
        self._clear_gradients()
        # The last one is compared; one without a gradient would show nothing.
        order = norms.argsort()
        order = order[torch.isfinite(norms[order])]
        compared = min(len(order), 2)
        if self._verified < compared and bool(norms[order[-1]] > 0):
            checks.verify_independence(self._probe, loss, checks.rows_of(batch, order))
            self._verified = compared

    def _forward(self, loss: Loss, batch: Batch) -> Tensor:
        checks.refuse_training_batch_norm(self.model)
        mixed: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self.settings.autocast is not None:
            mixed = torch.autocast(self._sum.device.type, dtype=self.settings.autocast)
        with self._state.kept(), mixed:
            try:
                return loss(self.model, batch)
            except RuntimeError as error:
                # A hook before a layer makes its output a view, which must not be changed in place.
                if "BackwardHookFunction" not in str(error) or self._capture.on_outputs:
                    raise
                self._capture.hook_outputs()
                return loss(self.model, batch)

    def _backward(self, loss: Loss, batch: Batch) -> Tensor:
        size = checks.batch_size(batch)
        self._capture.begin_forward()
        losses = checks.checked_losses(self._forward(loss, batch), size)
        with self._capture.recording(size):
            if self._ghost:
                # Gradients of matrices would be thrown away: only the way to everything else is run.
                with full_precision(), checks.reentrant_refused():
                    torch.autograd.backward(losses.sum(), retain_graph=True, inputs=self._ends())
            else:
                torch.autograd.backward(losses.sum())
        self._mismatch |= checks.sums_differ(self._capture.gradients, self.trained, self._tolerance)
        return losses

    def _ends(self) -> list[nn.Parameter]:
        written = [item.parameter for item in self.trained if item.written_out]
        return [*written, *self._capture.ends] or self.parameters

    def _add_written(self, norms: Tensor, scale: Tensor) -> None:
        rows = self._capture.gradients
        # 0 times a value that is not finite would not be 0.
        finite = torch.isfinite(norms)
        rows.masked_fill_(~finite[:, None], 0.0).mul_(scale[:, None].to(rows.dtype))
        self._skipped += (~finite).sum()
        clipped = rows.sum(0)
        for item, part in zip(self.trained, self._split(self._sum), strict=True):
            if item.written_out:
                part += clipped[self._capture.slot(item.parameter)].reshape(part.shape)

    def _add_ghost(self, losses: Tensor, scale: Tensor) -> None:
        self._clear_gradients()
        with quiet(), full_precision():
            torch.autograd.backward(
                (losses * scale.to(losses.dtype)).sum(),
                inputs=[item.parameter for item in self._ghost],
            )
        for item, part in zip(self.trained, self._split(self._sum), strict=True):
            if not item.written_out and item.parameter.grad is not None:
                part += item.parameter.grad

    def _without(self, loss: Loss, batch: Batch, finite: Tensor, losses: Tensor) -> Tensor:
        """The second pass cannot leave an example out of a graph, so a new one is made."""
        self._clear_gradients()
        self._skipped += (~finite).sum()
        rest = losses.detach().clone()
        rest[finite] = self.accumulate(loss, checks.rows_of(batch, finite))
        return rest

    def _split(self, flat: Tensor) -> list[Tensor]:
        sizes = [item.parameter.numel() for item in self.trained]
        parts = torch.split(flat, sizes)
        return [p.view(i.parameter.shape) for p, i in zip(parts, self.trained, strict=True)]

    def _clear_gradients(self) -> None:
        for item in self.trained:
            item.parameter.grad = None


def make_private(
    model: nn.Module,
    settings: PrivacySettings,
    *,
    method: Method = "bitfit",
    head: str | None = "auto",
    exclude: Sequence[str] = (),
    noise: NoiseSource | None = None,
    reduce: Reduce | None = None,
) -> PrivateModel:
    """Freeze everything but what ``method`` trains and collect per-example gradients of that.

    Args:
        model: Changed in place: ``requires_grad`` flags, hooks, and activations that work in place.
        settings: The mechanism.
        method: ``bitfit`` (biases and head), ``full`` or ``last_layer``.
        head: Name of the classification head, ``"auto"`` to find it, None for none.
        exclude: Shell patterns of parameter names that stay frozen.
        noise: Source of the noise; the operating system's when None. Tests inject one.
        reduce: Sums a flat tensor over the processes of a data-parallel run, in place.

    Returns:
        The private model.

    Raises:
        PrivacyError: A parameter to be trained has no per-example gradient.
    """
    trained = select(model, method, head, exclude)
    for module in model.modules():
        # A hook makes the layer's output a view, which must not be overwritten.
        if getattr(module, "inplace", False) is True:
            with contextlib.suppress(AttributeError):
                setattr(module, "inplace", False)  # noqa: B010
    return PrivateModel(model, trained, settings, noise or SystemNoise(), reduce)


def freeze_others(model: nn.Module, trained: Sequence[Trained]) -> list[tuple[nn.Parameter, bool]]:
    """Leave only the trained parameters trainable; returns what every flag was before."""
    wanted = {id(item.parameter) for item in trained}
    before = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    for parameter, _ in before:
        parameter.requires_grad_(id(parameter) in wanted)
        parameter.grad = None
    return before
