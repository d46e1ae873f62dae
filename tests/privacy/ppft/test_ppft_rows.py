"""Pooling, unit norm, obfuscation; and what they cost."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.charges import Charge
from privacy.ppft.accounting import ACCOUNT, METRIC, charge, cost
from privacy.ppft.noise import Noise
from privacy.ppft.rows import obfuscate, pool, slots, unit
from privacy.randomness import SeededRandomness


def test_windows_do_not_overlap_and_the_last_has_its_real_length() -> None:
    states = np.arange(14, dtype=np.float32).reshape(7, 2)
    pooled = pool(states, 3)
    assert pooled.tolist() == [[2.0, 3.0], [8.0, 9.0], [12.0, 13.0]]


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 5))
def test_pooling_is_the_mean_of_each_slice(n: int, k: int, d: int) -> None:
    states = np.random.default_rng(n * 100 + k).normal(size=(n, d))
    pooled = pool(states, k)
    assert pooled.shape == (slots(n, k), d) and slots(n, k) == math.ceil(n / k)
    for row, start in enumerate(range(0, n, k)):
        assert np.allclose(pooled[row], states[start : start + k].mean(axis=0))


def test_a_window_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        pool(np.zeros((3, 2)), 0)
    with pytest.raises(ValueError, match="matrix"):
        pool(np.zeros(3), 1)


def test_rows_leave_with_norm_one_whatever_came_in() -> None:
    states = np.random.default_rng(0).normal(size=(9, 16)) * 50.0
    states[3] = 0.0
    for noise in (Noise("laplace", 20.0), Noise("gaussian", 20.0)):
        rows = obfuscate(states, 1, noise, SeededRandomness(1))
        assert rows.shape == (9, 16) and rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
    # The norm of what came in is gone: a longer state gives the very same row.
    assert np.array_equal(
        obfuscate(states, 3, Noise("laplace", 20.0), SeededRandomness(5)),
        obfuscate(states * 7.0, 3, Noise("laplace", 20.0), SeededRandomness(5)),
    )


def test_noise_hides_more_the_smaller_epsilon_is() -> None:
    states = np.random.default_rng(0).normal(size=(200, 384))
    clean = unit(pool(states, 1))
    means = []
    for epsilon in (1000.0, 150.0, 75.0, 10.0):
        rows = obfuscate(states, 1, Noise("laplace", epsilon), SeededRandomness(2))
        means.append(float((rows * clean).sum(axis=1).mean()))
        # Noise of length 384/ε, nearly at a right angle to the row.
        assert means[-1] == pytest.approx(1 / math.sqrt(1 + (384 / epsilon) ** 2), abs=0.02)
    assert means == sorted(means, reverse=True)


def test_an_empty_text_has_no_rows() -> None:
    assert obfuscate(np.zeros((0, 8)), 4, Noise(), SeededRandomness(0)).shape == (0, 8)


def test_a_record_costs_two_epsilon_a_slot() -> None:
    spent = cost(12, 384, Noise("laplace", 75.0))
    assert (spent.epsilon_per_slot, spent.epsilon, spent.delta) == (150.0, 1800.0, 0.0)
    assert cost(0, 384, Noise()).epsilon == 0.0
    assert cost(3, 384, Noise.of(None)).epsilon == math.inf


def test_gaussian_noise_is_accounted_in_concentrated_privacy() -> None:
    one, ten = (cost(n, 384, Noise("gaussian", 75.0), 1e-6) for n in (1, 10))
    rho = 2.0 * 75.0**2 / 384
    assert one.epsilon == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e6)))
    assert ten.epsilon == pytest.approx(10 * rho + 2 * math.sqrt(10 * rho * math.log(1e6)))
    assert ten.epsilon < 10 * one.epsilon and ten.delta == 1e-6


def test_the_charge_names_its_own_account_and_metric() -> None:
    made = charge(cost(12, 384, Noise("laplace", 75.0)), Noise("laplace", 75.0), "ab12")
    assert made == Charge("record:12", "ppft-laplace", "euclidean", 1800.0, 0.0, "ab12")
    assert (ACCOUNT, METRIC) == ("ppft", "euclidean")
    with pytest.raises(ValueError, match="slots"):
        cost(-1, 384, Noise())
