"""Randomness: one source, the operating system's CSPRNG (DESIGN 3.8).

Everything that draws takes a `Randomness`, so tests inject `SeededRandomness` explicitly and
production code cannot reach a seeded generator by accident.
"""

import secrets
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Randomness(Protocol):
    """A source of uniform draws."""

    def uniform(self, size: int) -> NDArray[np.float64]:
        """Return ``size`` independent draws from the open interval (0, 1), float64, 52 bits each."""

    def below(self, n: int) -> int:
        """Return a uniform integer in [0, n).  Raises ValueError when n < 1."""


class SystemRandomness:
    """Draws from `secrets`, that is from the operating system."""

    def uniform(self, size: int) -> NDArray[np.float64]:
        raw = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64)
        # Half a unit in the last place keeps 0 and 1 out, so that log() of a draw is finite; with 53
        # bits the half would be lost to rounding at the top.
        return ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def below(self, n: int) -> int:
        if n < 1:
            raise ValueError(f"cannot draw an integer below {n}")
        return secrets.randbelow(n)


class SeededRandomness:
    """A reproducible source for tests and benchmarks; never for anybody's data."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def uniform(self, size: int) -> NDArray[np.float64]:
        return np.asarray(self._generator.uniform(2.0**-54, 1.0 - 2.0**-53, size), dtype=np.float64)

    def below(self, n: int) -> int:
        if n < 1:
            raise ValueError(f"cannot draw an integer below {n}")
        return int(self._generator.integers(n))
