"""The same run without privacy, for comparison: no clipping, no noise, no guarantee."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from learning.bitfit.checks import batch_size, checked_losses
from learning.bitfit.engine import Reduce, freeze_others
from learning.bitfit.losses import Batch, Loss
from learning.bitfit.select import Method, select


class PlainModel:
    """The interface of `PrivateModel` around ordinary gradients.

    Args:
        model: Changed in place: ``requires_grad`` flags.
        expected_batch: Divisor of the summed gradient.
        method: What is trained.
        head: Name of the classification head, ``"auto"`` or None.
        exclude: Shell patterns of parameter names that stay frozen.
        autocast: Type of the forward pass, or None.
        reduce: Sums a flat tensor over processes, in place.
    """

    def __init__(
        self,
        model: nn.Module,
        expected_batch: float,
        *,
        method: Method = "bitfit",
        head: str | None = "auto",
        exclude: Sequence[str] = (),
        autocast: torch.dtype | None = None,
        reduce: Reduce | None = None,
    ) -> None:
        self.model = model
        self.trained = select(model, method, head, exclude)
        self._divisor = expected_batch
        self._autocast = autocast
        self._reduce = reduce
        self._frozen = freeze_others(model, self.trained)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """What an optimizer is to be built on."""
        return [item.parameter for item in self.trained]

    def accumulate(self, loss: Loss, batch: Batch) -> Tensor:
        """Add the gradients of a microbatch; returns its losses ``(B,)``."""
        size = batch_size(batch)
        if size == 0:
            return torch.zeros(0, device=self.parameters[0].device)
        kind = self.parameters[0].device.type
        enabled = self._autocast is not None
        with torch.autocast(kind, dtype=self._autocast or torch.bfloat16, enabled=enabled):
            losses = checked_losses(loss(self.model, batch), size)
        torch.autograd.backward(losses.sum())
        return losses.detach()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """One step of ``optimizer`` with the summed gradients over the constant divisor."""
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        grads = [p.grad for p in self.parameters if p.grad is not None]
        if self._reduce is not None:
            flat = torch.cat([grad.reshape(-1) for grad in grads])
            self._reduce(flat)
            parts = torch.split(flat, [grad.numel() for grad in grads])
            for grad, part in zip(grads, parts, strict=True):
                grad.copy_(part.view_as(grad))
        torch._foreach_div_(grads, self._divisor)
        optimizer.step()
        for parameter in self.parameters:
            parameter.grad = None

    def close(self) -> None:
        """Give the frozen parameters their state back."""
        for parameter, wanted in self._frozen:
            parameter.requires_grad_(wanted)
