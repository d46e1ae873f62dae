"""A second public bound on candidate probabilities, from the pool's mean and second moments.

For every input w, Pr[u | w] <= 1 / sum_v h(<w, v>), where h(c) = exp(-(eps/2) |d(c) - tau|) <= 1
and d(c) is the angle/pi or 1 - c.  Whatever w is, the cosines c_v = <w, v> have a mean in
[-|m|, |m|] and a mean square of at most L, where m is the mean vector of the pool and L the
largest eigenvalue of its second-moment matrix.  So any parabola a + b c - g c^2 <= h(c) on
[-1, 1] with g >= 0 gives  sum_v h(c_v) >= n (a - |b| |m| - g L)  for all w at once.
`Moments.total` searches b and g; every pair is valid, a better one is only tighter.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy.pools.spread import ANGULAR

_STEPS: Final = 2_000
_TURNS: Final = np.linspace(0.0, 1.0, _STEPS + 1)
_COSINES: Final = np.cos(np.pi * _TURNS)
_SLACK: Final = 1e-6


@dataclass(frozen=True)
class Moments:
    """Length of the mean vector and largest eigenvalue of the second-moment matrix."""

    size: int
    mean: float
    square: float

    @classmethod
    def of(cls, vectors: NDArray[np.float64]) -> "Moments":
        """Compute the moments of unit rows, shape (n, d), rounded up."""
        size = len(vectors)
        mean = float(np.linalg.norm(vectors.mean(axis=0))) + _SLACK
        square = float(np.linalg.eigvalsh(vectors.T @ vectors / size)[-1]) + _SLACK
        return cls(size, min(mean, 1.0), min(square, 1.0))

    def total(self, epsilon: float, tau: float, metric: str) -> float:
        """Return a lower bound of the sum of weights over the pool for every input, >= 0."""
        best, slope, bend, step = -np.inf, 0.0, 0.0, 0.5
        while step > 1e-3:
            around = [
                (slope + step * i, max(0.0, bend + step * j))
                for i in (-1, 0, 1)
                for j in (-1, 0, 1)
            ]
            values = [self._value(epsilon, tau, metric, b, g) for b, g in around]
            top = int(np.argmax(values))
            if values[top] > best + 1e-9:
                best, (slope, bend) = values[top], around[top]
            else:
                step /= 2.0
        return max(0.0, self.size * best)

    def _value(self, epsilon: float, tau: float, metric: str, b: float, g: float) -> float:
        weights, steepest = _weights(epsilon, tau, metric)
        free = weights - b * _COSINES + g * _COSINES * _COSINES
        # Between two grid points the function moves by at most its slope times half the step.
        margin = (steepest + np.pi * (abs(b) + g)) / (2.0 * _STEPS)
        return float(free.min() - margin - abs(b) * self.mean - g * self.square)


def _weights(epsilon: float, tau: float, metric: str) -> tuple[NDArray[np.float64], float]:
    """Return h on the grid of turns (angle/pi) and a bound on its slope there."""
    angular = metric == ANGULAR
    distance = _TURNS if angular else 1.0 - _COSINES
    weights = np.exp(-0.5 * epsilon * np.abs(distance - tau))
    return weights, 0.5 * epsilon * (1.0 if angular else np.pi)
