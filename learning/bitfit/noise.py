"""Gaussian noise out of the operating system's CSPRNG."""

import secrets
from typing import Final, Protocol

import torch
from torch import Tensor

from privacy.randomness import SystemRandomness

# Above this, on an accelerator, drawing on the host would cost more than the step itself.
_HOST_DRAWS: Final = 2**20


class NoiseSource(Protocol):
    """A source of standard normal draws."""

    def normal(self, size: int, device: torch.device) -> Tensor:
        """Return ``size`` independent standard normal draws, fp32, on ``device``."""


class SystemNoise:
    """Every draw comes from the operating system; nothing is kept, nothing can be replayed.

    Inverse CDF in fp64 over 52 random bits, rounded to fp32. Torch's generator for the CPU would
    not do: whatever its seed, it keeps 32 bits of it, few enough to try them all. Only large draws
    on an accelerator (full fine-tuning) use the device's Philox generator, which keeps 64 bits, with
    a fresh seed for every draw. The floating-point gap of DP-SGD (docs/bitfit.md) applies.
    """

    def normal(self, size: int, device: torch.device) -> Tensor:
        if device.type == "cpu" or size <= _HOST_DRAWS:
            uniform = torch.from_numpy(SystemRandomness().uniform(size))
            normal: Tensor = torch.special.ndtri(uniform)
            return normal.to(device, torch.float32)
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
