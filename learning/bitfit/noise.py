"""Gaussian noise whose seed comes from the operating system."""

import secrets
from typing import Protocol

import torch
from torch import Tensor


class NoiseSource(Protocol):
    """A source of standard normal draws."""

    def normal(self, size: int, device: torch.device) -> Tensor:
        """Return ``size`` independent standard normal draws, fp32, on ``device``."""


class SystemNoise:
    """A generator seeded anew from the OS CSPRNG for every draw; nothing is kept, nothing replayed.

    The Gaussian itself is sampled in fp32 by torch: the usual floating-point gap of DP-SGD
    (docs/bitfit.md) applies.
    """

    def normal(self, size: int, device: torch.device) -> Tensor:
        generator = torch.Generator(device)
        # A signed 64-bit integer is what every device's generator accepts.
        generator.manual_seed(secrets.randbits(64) - 2**63)
        return torch.randn(size, generator=generator, device=device, dtype=torch.float32)


class SeededNoise:
    """A reproducible source for tests and benchmarks; never for anybody's data."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, size: int, device: torch.device) -> Tensor:
        draw = torch.randn(size, generator=self._generator, dtype=torch.float32)
        return draw.to(device)


class NoNoise:
    """For the ranks that add none: the noise of a step is drawn on rank 0."""

    def normal(self, size: int, device: torch.device) -> Tensor:
        return torch.zeros(size, dtype=torch.float32, device=device)
