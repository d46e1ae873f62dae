"""Data-parallel training: what the processes of one run exchange.

Per step one sum of clipped gradients (of the trained parameters only, about 0.1 % of a model for
biases) and one flag. Rank 0 puts the noise into its part of the sum, so that it is in there once.
"""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor

from learning.bitfit.errors import CheckpointError


class Processes:
    """The processes of a torchrun job, or this one alone.

    Attributes:
        rank: Number of this process.
        world: Number of processes.
        bytes_reduced: Payload of this process's all-reduce calls for gradients, in bytes.
    """

    def __init__(self) -> None:
        active = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if active else 0
        self.world = dist.get_world_size() if active else 1
        self.bytes_reduced = 0

    def reduce(self, total: Tensor) -> None:
        """Sum ``total`` over the processes, in place."""
        if self.world > 1:
            dist.all_reduce(total)
            self.bytes_reduced += total.numel() * total.element_size()

    def any(self, flag: bool, device: torch.device) -> bool:
        """Does any process say yes?"""
        if self.world == 1:
            return flag
        answer = torch.tensor([int(flag)], device=device)
        dist.all_reduce(answer)
        return bool(answer.item())

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Give every process the values of rank 0, in place."""
        if self.world > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), 0)

    def refuse_different(self, fingerprint: str) -> None:
        """Raise CheckpointError unless every process holds the same base model."""
        found: list[str | None] = [fingerprint] * self.world
        if self.world > 1:
            dist.all_gather_object(found, fingerprint)
        if len(set(found)) > 1:
            raise CheckpointError("the processes hold different base models; load the same weights")

    def barrier(self) -> None:
        """Wait for the others."""
        if self.world > 1:
            dist.barrier()
