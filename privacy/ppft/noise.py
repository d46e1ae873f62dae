"""Isotropic Laplace noise for rows of embeddings, and a Gaussian of the same size beside it.

Density of the Laplace noise in d dimensions (DP_NOTES 4): ``f(x) = ε^d e^(−ε‖x‖) / (Γ(d) S_(d−1))``
with ``S_(d−1) = 2π^(d/2) / Γ(d/2)``.  By the triangle inequality the privacy loss between two inputs
is at most ``ε·‖u−u′‖₂``.  Its norm is Gamma(d, rate ε), mean d/ε; its direction is uniform.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privacy.randomness import Randomness

Mechanism = Literal["laplace", "gaussian", "none"]


@dataclass(frozen=True, slots=True)
class Noise:
    """Which noise, how much.

    Attributes:
        mechanism: ``laplace`` (ε·d₂-private), ``gaussian`` (of the same expected size as the Laplace
            noise of this ε, for comparison) or ``none`` (public data only).
        epsilon: Rate of the Laplace noise per unit of Euclidean distance; infinite for ``none``.

    Raises:
        ValueError: epsilon is not positive, or infinite where noise is asked for.
    """

    mechanism: Mechanism = "laplace"
    epsilon: float = 75.0

    def __post_init__(self) -> None:
        if not self.epsilon > 0.0:
            raise ValueError(f"epsilon must be above 0, not {self.epsilon}")
        if (self.mechanism == "none") != math.isinf(self.epsilon):
            raise ValueError("noise needs a finite epsilon; without noise epsilon is infinite")

    @classmethod
    def of(cls, epsilon: float | None, mechanism: Mechanism = "laplace") -> "Noise":
        """Return the noise of an ε; None or infinity means none."""
        if epsilon is None or math.isinf(epsilon):
            return cls("none", math.inf)
        return cls(mechanism, epsilon)

    def draw(self, rows: int, dimensions: int, random: Randomness) -> NDArray[np.float64]:
        """Return float64 noise of shape (rows, dimensions)."""
        if self.mechanism == "laplace":
            return isotropic_laplace(rows, dimensions, self.epsilon, random)
        if self.mechanism == "gaussian":
            return gaussian(rows, dimensions, gaussian_scale(dimensions, self.epsilon), random)
        return np.zeros((rows, dimensions))


def isotropic_laplace(
    rows: int, dimensions: int, epsilon: float, random: Randomness
) -> NDArray[np.float64]:
    """Draw noise with density proportional to ``exp(−ε‖x‖)``.

    The norm is a sum of ``dimensions`` exponentials, which is the Gamma law exactly.

    Returns:
        float64 of shape (rows, dimensions).

    Raises:
        ValueError: epsilon is not positive and finite.
    """
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, not {epsilon}")
    direction = gaussian(rows, dimensions, 1.0, random)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    uniforms = random.uniform(rows * dimensions).reshape(rows, dimensions)
    radius = -np.log(uniforms).sum(axis=1, keepdims=True) / epsilon
    return np.asarray(direction * radius, dtype=np.float64)


def gaussian(rows: int, dimensions: int, scale: float, random: Randomness) -> NDArray[np.float64]:
    """Draw independent normals of standard deviation ``scale``, float64 (rows, dimensions)."""
    uniforms = random.uniform(rows * dimensions).reshape(rows, dimensions)
    return np.asarray(ndtri(uniforms) * scale, dtype=np.float64)


def gaussian_scale(dimensions: int, epsilon: float) -> float:
    """Standard deviation whose noise is as long as the Laplace noise of ε: ``√d / ε``."""
    return math.sqrt(dimensions) / epsilon


def laplace_log_density(points: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Log density of the isotropic Laplace noise at ``points`` (n, d); returns (n,)."""
    d = points.shape[1]
    sphere = math.log(2.0) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
    constant = d * math.log(epsilon) - math.lgamma(d) - sphere
    return np.asarray(constant - epsilon * np.linalg.norm(points, axis=1), dtype=np.float64)
