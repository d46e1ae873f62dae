"""The noise against closed forms: density, norm, direction, and the loss bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privacy.ppft.noise import (
    Noise,
    gaussian_scale,
    isotropic_laplace,
    laplace_log_density,
)
from privacy.randomness import SeededRandomness, SystemRandomness


@pytest.mark.parametrize(("dimensions", "epsilon"), [(1, 2.0), (3, 0.7), (384, 75.0)])
def test_the_norm_is_gamma(dimensions: int, epsilon: float) -> None:
    noise = isotropic_laplace(4000, dimensions, epsilon, SeededRandomness(1))
    law = stats.gamma(a=dimensions, scale=1.0 / epsilon)
    assert stats.kstest(np.linalg.norm(noise, axis=1), law.cdf).pvalue > 0.001


def test_a_wrong_rate_is_noticed() -> None:
    noise = isotropic_laplace(4000, 3, 0.75, SeededRandomness(1))
    law = stats.gamma(a=3, scale=1.0 / 0.7)
    assert stats.kstest(np.linalg.norm(noise, axis=1), law.cdf).pvalue < 0.001


def test_the_direction_is_uniform_and_independent_of_the_norm() -> None:
    d = 5
    noise = isotropic_laplace(8000, d, 3.0, SeededRandomness(2))
    radius = np.linalg.norm(noise, axis=1)
    along = noise / radius[:, None]
    # The square of one coordinate of a uniform direction is Beta(1/2, (d - 1)/2).
    for axis in range(d):
        assert stats.kstest(along[:, axis] ** 2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > 0.001
        assert abs(np.corrcoef(along[:, axis], radius)[0, 1]) < 0.05
    assert np.allclose(np.cov(along.T), np.eye(d) / d, atol=0.02)


def test_one_dimension_is_the_ordinary_laplace() -> None:
    points = np.linspace(-3, 3, 13)[:, None]
    assert np.allclose(
        laplace_log_density(points, 1.7), stats.laplace(scale=1 / 1.7).logpdf(points[:, 0])
    )


def test_the_density_integrates_to_one_in_three_dimensions() -> None:
    radius = np.linspace(1e-6, 30.0, 200_001)
    density = np.exp(laplace_log_density(np.stack([radius, 0 * radius, 0 * radius], axis=1), 1.3))
    assert math.isclose(np.trapezoid(density * 4 * np.pi * radius**2, radius), 1.0, rel_tol=1e-6)


def test_draws_fall_where_the_density_says() -> None:
    # Counts in balls around the origin and around a point off it, against numerical integrals.
    noise = isotropic_laplace(60_000, 2, 1.0, SeededRandomness(3))
    grid = np.linspace(-0.5, 0.5, 401)
    x, y = np.meshgrid(grid, grid)
    disc = np.stack([x.ravel(), y.ravel()], axis=1)[(x**2 + y**2).ravel() <= 0.25]
    for centre in (np.array([0.0, 0.0]), np.array([1.0, -0.6])):
        share = float((np.linalg.norm(noise - centre, axis=1) <= 0.5).mean())
        exact = float(
            np.exp(laplace_log_density(disc + centre, 1.0)).sum() * (grid[1] - grid[0]) ** 2
        )
        assert abs(share - exact) < 4 * math.sqrt(exact / 60_000) + 0.002


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.floats(0.1, 100.0),
    st.integers(0, 2**32 - 1),
)
def test_the_loss_is_at_most_epsilon_times_the_distance(d: int, epsilon: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    u, v = generator.normal(size=(2, d))
    outputs = np.concatenate(
        [
            generator.normal(scale=3.0, size=(50, d)),
            u + generator.normal(scale=1e-3, size=(2, d)),
            # Beyond v on the line from u: where the bound is reached.
            (v + (v - u) * np.array([[0.5], [2.0], [9.0]])),
        ]
    )
    loss = laplace_log_density(outputs - v, epsilon) - laplace_log_density(outputs - u, epsilon)
    bound = epsilon * float(np.linalg.norm(u - v))
    assert np.abs(loss).max() <= bound * (1 + 1e-9) + 1e-9
    assert math.isclose(loss[-1], bound, rel_tol=1e-6, abs_tol=1e-9)


def test_gaussian_noise_is_as_long_as_laplace_noise() -> None:
    random = SeededRandomness(4)
    lengths = {
        name: np.linalg.norm(Noise(name, 75.0).draw(500, 384, random), axis=1).mean()
        for name in ("laplace", "gaussian")
    }
    assert lengths["laplace"] == pytest.approx(384 / 75, rel=0.01)
    assert lengths["gaussian"] == pytest.approx(lengths["laplace"], rel=0.01)
    assert gaussian_scale(384, 75.0) == pytest.approx(math.sqrt(384) / 75)


def test_the_systems_source_never_repeats() -> None:
    first, second = (isotropic_laplace(3, 4, 1.0, SystemRandomness()) for _ in range(2))
    assert first.dtype == np.float64 and not np.isclose(first, second).any()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_impossible_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        Noise("laplace", epsilon)
    with pytest.raises(ValueError, match="epsilon"):
        isotropic_laplace(1, 2, epsilon, SeededRandomness(0))


def test_no_noise_has_to_be_said() -> None:
    with pytest.raises(ValueError, match="finite epsilon"):
        Noise("laplace", math.inf)
    with pytest.raises(ValueError, match="without noise"):
        Noise("none", 75.0)
    assert Noise.of(None) == Noise.of(math.inf) == Noise("none", math.inf)
    assert not Noise.of(None).draw(2, 3, SeededRandomness(0)).any()
