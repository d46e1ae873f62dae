"""p_max bounds every candidate's probability under every input (docs/mechanism.md)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.embedding import unit, unit_rows
from privacy.pools import Pool, PoolError, PoolSet
from privacy.pools.spread import GRID, METRICS, Spread


def weights(pool: Pool, vector: np.ndarray, epsilon: float, tau: float, metric: str) -> np.ndarray:
    cosine = np.clip(pool.vectors @ vector, -1.0, 1.0)
    distance = np.arccos(cosine) / np.pi if metric == "angular" else 1.0 - cosine
    return np.exp(-0.5 * epsilon * np.abs(distance - tau))


def inputs(pool: Pool, generator: np.random.Generator, tau: float) -> list[np.ndarray]:
    """Random inputs, names, opposites, zero, and inputs at distance tau beyond a remote name."""
    vectors = pool.vectors
    centre = unit(vectors.mean(axis=0))
    picked = [vectors[generator.integers(len(pool))] for _ in range(3)]
    remote = vectors[int(np.argmin(vectors @ centre))]
    outward = unit(remote - (remote @ centre) * centre)
    beyond = [
        np.cos(np.pi * turn) * remote
        + np.sin(np.pi * turn) * unit(outward - (outward @ remote) * remote)
        for turn in (tau, tau / 2)
    ]
    noise = [unit(generator.normal(size=vectors.shape[1])) for _ in range(3)]
    return [*picked, *noise, *beyond, -centre, centre, np.zeros(vectors.shape[1]), remote, -remote]


@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 40),
    closeness=st.floats(0.05, 3.0),
    epsilon=st.floats(0.005, 150.0),
    share=st.floats(0.0, 1.0),
    metric=st.sampled_from(METRICS),
)
@settings(max_examples=150, deadline=None)
def test_no_candidate_exceeds_the_bound_even_after_others_left(
    seed: int, size: int, closeness: float, epsilon: float, share: float, metric: str
) -> None:
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = generator.normal(size=(size, 4)) * closeness
    rows[:, 0] += 1.0
    pool = Pool.from_vectors("org", [f"N{i}" for i in range(size)], unit_rows(rows))
    tau = share if metric == "angular" else 2.0 * share
    for vector in inputs(pool, generator, share):
        mass = weights(pool, vector, epsilon, tau, metric)
        assert mass.max() / mass.sum() <= pool.p_max(epsilon, tau, metric) * (1 + 1e-9)
        gone = generator.permutation(size)[: generator.integers(size)]
        mass[gone] = 0.0
        bound = pool.p_max(epsilon, tau, metric, len(gone))
        assert mass.max() / mass.sum() <= bound * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.3, 20.0])
def test_the_bound_holds_and_is_useful_on_the_real_pools(epsilon: float) -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    pools = PoolSet.load()
    for fine_type in ("person.given", "loc.city", "loc.country", "org"):
        pool = pools.pool(fine_type)
        found = 0.0
        for tau in (0.0, 0.35, 0.5):
            for vector in inputs(pool, generator, tau):
                mass = weights(pool, vector, epsilon, tau, "angular")
                found = max(found, float(mass.max() / mass.sum()) / pool.p_max(epsilon, tau))
        assert 0.05 < found <= 1.0


def test_totals_between_grid_points_are_lower_bounds() -> None:
    distances = np.random.Generator(np.random.PCG64(4)).uniform(0.0, 1.0, (30, 30))
    np.fill_diagonal(distances, 0.0)

    def exact(epsilon: float) -> float:
        return float(np.exp(-0.5 * epsilon * distances).sum(axis=1).min())

    spread = Spread(30, tuple(exact(epsilon) for epsilon in GRID))
    for epsilon in np.geomspace(0.001, 400.0, 200):
        assert 1.0 <= spread.total(float(epsilon)) <= exact(float(epsilon)) + 1e-9
    assert spread.total(0.0) == 30.0


def test_an_unknown_metric_has_no_bound() -> None:
    pool = Pool.from_vectors("org", ["A", "B"], np.eye(2))
    with pytest.raises(PoolError, match="metric"):
        pool.p_max(1.0, 0.3, "euclidean")
