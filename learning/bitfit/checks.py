"""What must hold of a batch, a loss and a model before a gradient may be used.

The formulas assume that an example's loss depends on this example only, and that the first dimension
counts examples everywhere. Both are tested on the first batch rather than believed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from learning.bitfit.capture import Capture
from learning.bitfit.errors import PrivacyError
from learning.bitfit.ghost import full_precision
from learning.bitfit.losses import Batch, Loss
from learning.bitfit.select import Trained, batch_norms

COUPLING_KEYS = ("num_items_in_batch",)


def batch_size(batch: Batch) -> int:
    """Number of examples of a batch.  Raises PrivacyError when its tensors disagree."""
    for key in COUPLING_KEYS:
        if key in batch:
            raise PrivacyError(
                f"{key!r} makes an example's loss depend on the other examples of the batch; "
                "leave it out and normalise every example by its own length"
            )
    sizes = {value.shape[0] if value.ndim else None for value in batch.values()}
    if len(sizes) != 1 or None in sizes:
        raise PrivacyError(
            f"every tensor of a batch needs the same first dimension, found {sizes}; "
            "expand what is shared by the examples"
        )
    (size,) = sizes
    return int(size or 0)


def refuse_training_batch_norm(model: nn.Module) -> None:
    """Raise PrivacyError when a BatchNorm layer would use the statistics of the batch."""
    for name, module in batch_norms(model):
        if module.training or getattr(module, "running_mean", None) is None:
            raise PrivacyError(
                f"{name} is a BatchNorm layer in training mode: it mixes the examples of a batch. "
                "Call .eval() on it after model.train(), or use GroupNorm"
            )


def checked_losses(losses: Tensor, size: int) -> Tensor:
    """Return ``losses`` if it is one value per example.  Raises PrivacyError."""
    if losses.ndim != 1 or losses.shape[0] != size:
        raise PrivacyError(
            f"the loss must be one value per example, shape ({size},), not {tuple(losses.shape)}; "
            "use reduction='none' and average over an example's own tokens only"
        )
    if not losses.requires_grad:
        raise PrivacyError("the loss does not depend on any trained parameter")
    return losses


@dataclass(frozen=True, slots=True)
class Probe:
    """How a model is asked what one example does.

    Attributes:
        forward: ``(loss, batch) -> (B,)``.
        tolerance: Relative; of losses and norms.
    """

    model: nn.Module
    capture: Capture
    trained: Sequence[Trained]
    forward: Callable[[Loss, Batch], Tensor]
    tolerance: float

    def record(self, loss: Loss, batch: Batch, row: int) -> tuple[Tensor, Tensor, Tensor]:
        """Run the loss of example ``row`` back.

        Returns:
            That loss; the norm ``(B,)`` of what the hooks see of every example; autograd's norm.
        """
        size = batch_size(batch)
        self.capture.begin_forward()
        losses = checked_losses(self.forward(loss, batch), size)
        with self.capture.recording(size), full_precision():
            torch.autograd.backward(losses[row])
        exact = torch.stack([_square(item) for item in self.trained]).sum().sqrt()
        for item in self.trained:
            item.parameter.grad = None
        norms = self.capture.norms()
        return losses[row].detach(), norms, exact.to(norms.dtype)

    def differs(self, loss: Loss, batch: Batch, row: int, alone: Batch) -> bool:
        """Has example ``row`` another loss, or gradient, than the example ``alone``?

        A head at zero hides from the loss what the gradient shows. Without dropout, and in training mode
        where nothing else in the model is random.
        """
        with evaluating(self.model, unless=lambda: self._repeats(loss, batch)):
            among, norms, _ = self.record(loss, batch, row)
            one, norm, _ = self.record(loss, alone, 0)
        wide = self.tolerance
        same = torch.allclose(among, one, wide, wide, equal_nan=True)
        return not (
            same and torch.allclose(norms[row], norm[0], 2 * wide, wide / 100, equal_nan=True)
        )

    def _repeats(self, loss: Loss, batch: Batch) -> bool:
        return torch.equal(self.forward(loss, batch).detach(), self.forward(loss, batch).detach())


def verify_independence(probe: Probe, loss: Loss, batch: Batch) -> None:
    """Compare one example's captured gradient with autograd's own, and with that of it alone.

    It is the last of ``batch``, and for a second time the first: a layer may mix in one direction only.
    Costs some passes, once. Every gradient must be finite.

    Raises:
        PrivacyError: The example's loss or gradient depends on other examples, or the captured
            gradient is not autograd's.
    """
    last = batch_size(batch) - 1
    _verify_row(probe, loss, batch, last)
    if last:
        _verify_row(probe, loss, {name: value.flip(0) for name, value in batch.items()}, 0)


def _verify_row(probe: Probe, loss: Loss, batch: Batch, row: int) -> None:
    _, norms, exact = probe.record(loss, batch, row)
    others = torch.arange(len(norms), device=norms.device) != row
    if bool((norms[others] > probe.tolerance * exact + 1e-12).any()):
        raise PrivacyError(
            "the gradient of one example's loss reaches the rows of other examples in a layer: the "
            "batch is not the first dimension everywhere, or a layer mixes examples"
        )
    least, wide = probe.capture.norms(rounding=-1)[row], probe.tolerance * exact + 1e-12
    if not bool((least <= exact + wide) & (norms[row] >= exact - wide)):
        raise PrivacyError(
            "a captured per-example gradient is not the one autograd computes: a trained parameter "
            "is used outside its layer's forward, or a layer does not compute what its class does. "
            "Keep it frozen with exclude=[pattern]"
        )
    if probe.differs(loss, batch, row, {k: value[row : row + 1] for k, value in batch.items()}):
        raise PrivacyError(
            "an example's loss or gradient changes with the other examples of its batch (in-batch "
            "negatives, a mean over the batch, batch statistics); make it a function of the "
            "example alone"
        )


def verify_padding(probe: Probe, loss: Loss, batch: Batch, row: int, alone: Batch) -> bool:
    """Compare a record alone with itself padded to longer ones; False when it has no gradient.

    Raises:
        PrivacyError: It is another one.
    """
    if probe.differs(loss, batch, row, alone):
        raise PrivacyError(
            "an example's loss or gradient changes with its padding, and so with the length of the "
            "other examples of its batch: give the model an attention_mask that it obeys, or pad "
            "every example to one length"
        )
    with evaluating(probe.model):
        _, norm, _ = probe.record(loss, alone, 0)
    return bool(torch.isfinite(norm[0]) & (norm[0] > 0))


def sums_differ(captured: Tensor, trained: list[Trained], tolerance: float) -> Tensor:
    """Is the sum of the captured gradients other than autograd's sum?

    Args:
        captured: ``(B, P)``, unclipped.
        trained: Parameters, with autograd's sum in ``grad``.
        tolerance: Relative to the sum of the examples' norms.

    Returns:
        A boolean scalar on the device; False when a gradient is not finite.
    """
    written = [item for item in trained if item.written_out]
    if not written:
        return torch.zeros((), dtype=torch.bool, device=captured.device)
    ours = captured.sum(0)
    theirs = torch.cat([_gradient(item).reshape(-1) for item in written]).to(ours.dtype)
    scale = torch.linalg.vector_norm(captured, dim=1).sum()
    error = torch.linalg.vector_norm(ours - theirs)
    differs: Tensor = error > tolerance * scale + 1e-12
    return differs & torch.isfinite(scale)


def _gradient(item: Trained) -> Tensor:
    if item.parameter.grad is None:
        return torch.zeros_like(item.parameter)
    return item.parameter.grad


def _square(item: Trained) -> Tensor:
    return (
        _gradient(item).to(torch.promote_types(item.parameter.dtype, torch.float32)).square().sum()
    )


def rows_of(batch: Batch, chosen: Tensor) -> dict[str, Tensor]:
    """The examples that a boolean mask ``(B,)`` or their numbers name."""
    return {name: value[chosen.to(value.device)] for name, value in batch.items()}


@contextmanager
def reentrant_refused() -> Iterator[None]:
    """Say what to do where reentrant checkpointing meets a backward pass to some of the leaves."""
    try:
        yield
    except RuntimeError as error:
        if "use_reentrant" not in str(error):
            raise
        raise PrivacyError(
            "ghost clipping works with gradient checkpointing of the other kind only; call "
            'model.gradient_checkpointing_enable({"use_reentrant": False})'
        ) from error


@contextmanager
def evaluating(model: nn.Module, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Switch the model to evaluation meanwhile, ``unless`` it trains and that says so."""
    training = [module for module in model.modules() if module.training]
    if not training or not unless():
        model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
