"""The guarantee of the exponential mechanism, computed exactly on small pools (DESIGN 3.1, 3.2)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.accounting import hockey_stick, max_divergence
from privacy.accounting.divergence import without
from privacy.embedding import angle, chord, unit
from privacy.mechanisms import ExponentialMechanism

SIZES = st.integers(2, 12)
SEEDS = st.integers(0, 10**6)
EPSILONS = st.floats(0.01, 40.0)
SHARES = st.floats(0.0, 1.0)
METRICS = st.sampled_from(["angular", "cosine"])
Case = tuple[Any, ExponentialMechanism, np.ndarray, np.ndarray, np.random.Generator]


def case(
    toy: Callable[..., Any], seed: int, size: int, epsilon: float, share: float, metric: str
) -> Case:
    pool, embedding = toy(seed, size)
    tau = share if metric == "angular" else 2.0 * share
    mechanism = ExponentialMechanism(embedding, epsilon=epsilon, tau=tau, metric=metric)
    generator = np.random.Generator(np.random.PCG64(seed + 1))
    a = unit(generator.normal(size=4))
    kind = seed % 5
    other = [
        unit(generator.normal(size=4)),
        unit(a + 1e-3 * generator.normal(size=4)),
        -a,
        np.zeros(4),
        pool.vectors[0],
    ][kind]
    return pool, mechanism, a, other, generator


def claimed(mechanism: ExponentialMechanism, a: np.ndarray, b: np.ndarray) -> float:
    return mechanism.epsilon * (angle if mechanism.metric == "angular" else chord)(a, b)


@given(SEEDS, SIZES, EPSILONS, SHARES, METRICS)
@settings(deadline=None)
def test_loss_is_at_most_epsilon_times_distance_also_after_names_left(
    toy: Callable[..., Any], seed: int, size: int, epsilon: float, share: float, metric: str
) -> None:
    pool, mechanism, a, b, generator = case(toy, seed, size, epsilon, share, metric)
    taken = generator.permutation(size)[: generator.integers(size)].tolist()
    for gone in ((), taken):
        p, q = (mechanism.log_probabilities(v, pool, gone) for v in (a, b))
        assert np.exp(p).sum() == pytest.approx(1.0)
        assert np.isneginf(p).sum() == len(gone)
        bound = claimed(mechanism, a, b)
        assert mechanism.loss_bound(a, b) == bound
        assert max(max_divergence(p, q), max_divergence(q, p)) <= bound + 1e-6
        assert bound <= mechanism.base_charge(pool)[0] + 1e-9


@given(SEEDS, st.integers(4, 60), st.floats(0.01, 6.0), SHARES, METRICS)
@settings(deadline=None)
def test_exclusions_cost_no_more_than_is_charged(
    toy: Callable[..., Any], seed: int, size: int, epsilon: float, share: float, metric: str
) -> None:
    pool, mechanism, a, b, generator = case(toy, seed, size, epsilon, share, metric)
    order = generator.permutation(size).tolist()
    gone = order[: generator.integers(size - 3)]
    rest = order[len(gone) :]
    count = int(generator.integers(1, min(5, len(rest))))
    mine, theirs = (generator.permutation(rest)[:count] for _ in range(2))
    p = without(mechanism.log_probabilities(a, pool, gone), mine)
    q = without(mechanism.log_probabilities(b, pool, gone), theirs)
    more, delta = mechanism.exclusion_charge(pool, len(gone), count)
    bound = mechanism.loss_bound(a, b) + more
    assert hockey_stick(p, q, bound + 1e-6) <= delta + 1e-9
    assert hockey_stick(q, p, bound + 1e-6) <= delta + 1e-9


@given(SEEDS, EPSILONS, SHARES)
@settings(deadline=None, max_examples=30)
def test_two_draws_without_replacement_compose(
    toy: Callable[..., Any], seed: int, epsilon: float, share: float
) -> None:
    """All ordered pairs of substitutes for two entities, both replaced by others."""
    pool, mechanism, a, b, generator = case(toy, seed, 5, epsilon, share, "angular")
    c, d = unit(generator.normal(size=4)), unit(generator.normal(size=4))

    def joint(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        head = mechanism.log_probabilities(first, pool)
        rows = [
            head[i] + np.delete(mechanism.log_probabilities(second, pool, [i]), i)
            for i in range(len(pool))
        ]
        return np.concatenate(rows)

    p, q = joint(a, c), joint(b, d)
    assert np.exp(p).sum() == pytest.approx(1.0)
    bound = mechanism.loss_bound(a, b) + mechanism.loss_bound(c, d)
    assert max(max_divergence(p, q), max_divergence(q, p)) <= bound + 1e-6


def test_epsilon_times_one_minus_cosine_would_be_false(toy: Callable[..., Any]) -> None:
    """The claim of the paper, on near inputs: exceeded several times over."""
    pool, embedding = toy(3, 12)
    mechanism = ExponentialMechanism(embedding, epsilon=10.0, tau=0.0, metric="cosine")
    a = pool.vectors[0]
    b = unit(a + 0.05 * pool.vectors[5])
    p, q = (mechanism.log_probabilities(v, pool) for v in (a, b))
    loss = max(max_divergence(p, q), max_divergence(q, p))
    assert loss > 5.0 * mechanism.epsilon * (1.0 - float(a @ b))
    assert loss <= mechanism.loss_bound(a, b)


def test_an_unknown_name_is_drawn_for_uniformly(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(1, 8)
    for metric in ("angular", "cosine"):
        mechanism = ExponentialMechanism(embedding, epsilon=9.0, tau=0.3, metric=metric)
        assert mechanism.probabilities("", pool) == pytest.approx(np.full(8, 1 / 8))
        left = mechanism.probabilities("", pool, [0, 3])
        assert left[[0, 3]].tolist() == [0.0, 0.0]
        assert left[1] == pytest.approx(1 / 6)


def test_names_at_distance_tau_are_the_likeliest(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(2, 30)
    name = pool.names[4]
    for tau in (0.0, 0.2, 0.5):
        mechanism = ExponentialMechanism(embedding, epsilon=8.0, tau=tau)
        probabilities = mechanism.probabilities(name, pool)
        off = np.abs(pool.angles_to(embedding.vector(name)) - tau)
        assert int(np.argmax(probabilities)) == int(np.argmin(off))
        assert np.all(np.diff(probabilities[np.argsort(off)]) <= 1e-12)
        assert probabilities.min() > 0.0
