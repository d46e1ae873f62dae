"""Gaussian noise out of cryptographic random bits."""

import secrets
from typing import Final, Protocol

import torch
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from torch import Tensor

# Draws of one turn: their buffers stay in the processor's cache.
_TURN: Final = 2**16
_BITS: Final = 52
# Above this, on an accelerator, drawing on the host would cost more than the step itself.
_HOST_DRAWS: Final = 2**20


class NoiseSource(Protocol):
    """A source of standard normal draws."""

    def normal(self, size: int, device: torch.device) -> Tensor:
        """Return ``size`` independent standard normal draws, fp32, on ``device``."""


class SystemNoise:
    """Every draw has a 256-bit key of its own from the operating system; nothing can be replayed.

    AES-256 in counter mode stretches the key, inverse CDF in fp64 over 52 bits makes it normal, and
    the result is rounded to fp32. Torch's generator for the CPU would not do: whatever its seed, it
    keeps 32 bits of it, few enough to try them all. Only large draws on an accelerator (full
    fine-tuning) use the device's Philox generator, which keeps 64 bits, with a fresh seed for every
    draw. The floating-point gap of DP-SGD (docs/bitfit.md) applies.
    """

    def normal(self, size: int, device: torch.device) -> Tensor:
        if device.type == "cpu" or size <= _HOST_DRAWS:
            return _host_normal(size).to(device)
        generator = torch.Generator(device)
        # A signed 64-bit integer is what every device's generator accepts.
        generator.manual_seed(secrets.randbits(64) - 2**63)
        return torch.randn(size, generator=generator, device=device, dtype=torch.float32)


def _host_normal(size: int) -> Tensor:
    # A key is used once, so the counter may begin at zero.
    stream = Cipher(AES256(secrets.token_bytes(32)), CTR(bytes(16))).encryptor()
    out = torch.empty(size, dtype=torch.float32)
    turn = min(_TURN, size)
    zeros = bytes(8 * turn)
    uniform = torch.empty(turn, dtype=torch.float64)
    for start in range(0, size, _TURN):
        words = torch.frombuffer(bytearray(stream.update(zeros)), dtype=torch.int64)
        # Half a unit in the last place keeps 0 and 1 out, where the inverse CDF is infinite.
        uniform.copy_(words.bitwise_and_(2**_BITS - 1)).add_(0.5).mul_(2.0**-_BITS)
        part = out[start : start + turn]
        part.copy_(torch.special.ndtri(uniform)[: len(part)])
    return out


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
