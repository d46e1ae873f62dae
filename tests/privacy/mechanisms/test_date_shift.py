"""The shift of dates: the discrete Laplace distribution."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from privacy.accounting import hockey_stick
from privacy.mechanisms import MechanismError, draw_shift, shift_charge
from privacy.mechanisms.dates import zero_probability
from privacy.randomness import SeededRandomness


def exact(epsilon: float, reach: int) -> np.ndarray:
    days = np.arange(-reach, reach + 1)
    return math.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(days))


def test_shifts_follow_the_discrete_laplace_distribution() -> None:
    rng = SeededRandomness(5)
    found = np.array([draw_shift(0.5, rng) for _ in range(5_000)])
    inside = found[np.abs(found) <= 6]
    expected = exact(0.5, 6)
    counts = np.array([np.sum(inside == day) for day in range(-6, 7)])
    assert chisquare(counts, expected / expected.sum() * counts.sum()).pvalue > 1e-3
    assert len(inside) / 5_000 == pytest.approx(expected.sum(), abs=0.02)


def test_the_shift_may_be_kept_from_zero_at_a_price() -> None:
    rng = SeededRandomness(6)
    assert 0 in {draw_shift(1.0, rng) for _ in range(100)}
    assert 0 not in {draw_shift(1.0, rng, never_zero=True) for _ in range(300)}
    assert shift_charge(0.1) == (0.1, 0.0)
    epsilon, delta = shift_charge(0.1, never_zero=True)
    zero = zero_probability(0.1)
    assert zero == pytest.approx(exact(0.1, 500).max())
    assert delta == pytest.approx(zero / (1 - zero))
    assert epsilon == pytest.approx(0.1 - math.log(1 - zero))


@pytest.mark.parametrize("days", [1, 3, 30])
def test_the_charge_of_a_shift_that_is_never_zero_covers_the_exact_divergence(days: int) -> None:
    epsilon = 0.2
    reach = 400
    with np.errstate(divide="ignore"):
        shift = np.log(exact(epsilon, reach))
    shift[reach] = -np.inf
    shift -= np.log(np.exp(shift).sum())
    one = np.concatenate([shift, np.full(days, -np.inf)])
    two = np.concatenate([np.full(days, -np.inf), shift])
    per_day, delta = shift_charge(epsilon, never_zero=True)
    tail = math.exp(-epsilon * (reach - days))
    assert hockey_stick(one, two, per_day * days) <= delta + tail


def test_senseless_epsilons_are_refused() -> None:
    for epsilon in (0.0, -1.0, 21.0, math.nan):
        with pytest.raises(MechanismError, match="per day"):
            draw_shift(epsilon, SeededRandomness(1))
