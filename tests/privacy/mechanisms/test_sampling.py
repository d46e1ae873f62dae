"""The sampler: exact frequencies, and no candidate lost to rounding."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare

from privacy.mechanisms.sampling import fine_uniform, log_normalised, sample_index
from privacy.randomness import SeededRandomness, SystemRandomness


class Fixed:
    """Gives the same draws over and over."""

    def __init__(self, *draws: float) -> None:
        self._draws = np.array(draws)

    def uniform(self, size: int) -> NDArray[np.float64]:
        return self._draws[:size]

    def below(self, n: int) -> int:
        raise AssertionError("not used")


def test_frequencies_follow_the_weights() -> None:
    weights = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    rng = SeededRandomness(3)
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    found = [sample_index(logs, rng) for _ in range(5_000)]
    seen = np.bincount(np.array(found, dtype=np.int64), minlength=5)
    assert seen[1] == 0
    assert chisquare(seen[weights > 0], 5_000 * weights[weights > 0]).pvalue > 1e-3


def test_candidates_far_below_the_grid_of_one_draw_stay_reachable() -> None:
    logs = np.array([0.0, -45.0, -46.0])  # exp(-45) is 2^-65
    assert sample_index(logs, Fixed(2.0**-54, 2.0**-13)) == 1
    assert sample_index(logs, Fixed(2.0**-54, 2.0**-16)) == 2
    assert sample_index(logs, Fixed(0.5, 0.5)) == 0
    assert sample_index(logs, Fixed(1.0, 1.0)) == 0


def test_the_realised_probability_of_small_candidates_is_right() -> None:
    """The share of the unit interval that leads to the smallest candidate, to 12 digits."""
    logs = np.concatenate([np.zeros(50), np.full(50, -40.0)])
    total = 50 + 50 * np.exp(-40.0)
    edge = np.exp(-40.0) / total * 2.0**53  # in units of the coarse grid: inside its first cell
    assert sample_index(logs, Fixed(2.0**-54, edge * (1 - 1e-12))) == 50
    assert sample_index(logs, Fixed(2.0**-54, edge * (1 + 1e-12))) == 51


def test_fine_uniform_is_inside_the_interval_and_uniform() -> None:
    rng = SystemRandomness()
    found = np.array([fine_uniform(rng) for _ in range(4_000)])
    assert np.all((found > 0.0) & (found <= 1.0))
    counts, _ = np.histogram(found, bins=20, range=(0.0, 1.0))
    assert chisquare(counts).pvalue > 1e-6
    assert fine_uniform(Fixed(2.0**-54, 2.0**-54)) == 2.0**-107


def test_log_probabilities_do_not_overflow() -> None:
    logs = log_normalised(np.array([-1e5, -1e5 - 1.0, -np.inf]))
    assert np.exp(logs) == pytest.approx([0.7310586, 0.2689414, 0.0])
    nothing = np.array([-np.inf, -np.inf])
    assert sample_index(nothing, SeededRandomness(1)) is None
    assert np.isneginf(log_normalised(nothing)).all()
