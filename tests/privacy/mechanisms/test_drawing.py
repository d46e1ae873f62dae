"""Drawing: what is charged, what is excluded, when a pool is exhausted."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from privacy.mechanisms import (
    Exclusions,
    ExponentialMechanism,
    MechanismError,
    PoolExhausted,
    UniformMechanism,
    depletion,
    exclusion_charge,
    exclusions,
    make_mechanism,
    mechanism_names,
    register_mechanism,
)
from privacy.pools import Pool
from privacy.randomness import SeededRandomness, SystemRandomness

NONE = Exclusions(frozenset(), 0)


def draws(mechanism: Any, name: str, pool: Pool, taken: Any, barred: Any, count: int) -> np.ndarray:
    rng = SeededRandomness(11)
    found = [mechanism.draw(name, pool, taken, barred, rng).index for _ in range(count)]
    return np.bincount(found, minlength=len(pool))


@pytest.mark.parametrize("metric", ["angular", "cosine"])
def test_the_sampler_follows_the_exact_distribution(toy: Callable[..., Any], metric: str) -> None:
    pool, embedding = toy(4, 12)
    mechanism = ExponentialMechanism(embedding, epsilon=6.0, tau=0.3, metric=metric)
    name = pool.names[2]
    seen = draws(mechanism, name, pool, [1, 7], NONE, 6_000)
    expected = mechanism.probabilities(name, pool, [1, 7])
    assert seen[[1, 7]].tolist() == [0, 0]
    left = expected > 0.0
    assert chisquare(seen[left], 6_000 * expected[left]).pvalue > 1e-3


def test_exclusions_condition_the_distribution(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(4, 10)
    mechanism = ExponentialMechanism(embedding, epsilon=4.0, tau=0.3)
    name = pool.names[0]
    expected = mechanism.probabilities(name, pool)
    expected[[0, 5]] = 0.0
    expected /= expected.sum()
    left = expected > 0.0
    for barred in (Exclusions(frozenset({0, 5}), 2), lambda n: n in (name, pool.names[5])):
        seen = draws(mechanism, name, pool, [], barred, 4_000)
        assert seen[[0, 5]].tolist() == [0, 0]
        assert chisquare(seen[left], 4_000 * expected[left]).pvalue > 1e-3


def test_the_charge_is_epsilon_plus_the_exclusions(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(5, 40)
    rng = SeededRandomness(1)
    mechanism = ExponentialMechanism(embedding, epsilon=1.5, tau=0.35)
    plain = mechanism.draw("somebody", pool, [], NONE, rng)
    assert (plain.epsilon, plain.delta, plain.metric) == (1.5, 0.0, "angular")
    barred = Exclusions(frozenset({1}), 3)
    charged = mechanism.draw("somebody", pool, [0, 2], barred, rng)
    share = 3 * pool.p_max(1.5, 0.35, "angular", 2)
    assert charged.epsilon == pytest.approx(1.5 + math.log(1 / (1 - share)))
    assert charged.delta == pytest.approx(share / (1 - share))
    careless = ExponentialMechanism(embedding, epsilon=1.5, tau=0.35, never_self=False)
    free = careless.draw("somebody", pool, [], barred, rng)
    assert (free.epsilon, free.delta) == (1.5, 0.0)
    cosine = ExponentialMechanism(embedding, epsilon=1.5, tau=0.35, metric="cosine")
    assert cosine.draw("x", pool, [], NONE, rng).epsilon == 3.0
    assert cosine.draw("x", pool, [], NONE, rng).metric == "chordal"


def test_the_realised_shift_is_reported(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(5, 9)
    draw = UniformMechanism(embedding).draw(pool.names[3], pool, [], NONE, SystemRandomness())
    assert draw.name == pool.names[draw.index]
    assert math.cos(math.pi * draw.angle) == pytest.approx(draw.cosine, abs=1e-9)
    assert draw.cosine == pytest.approx(float(pool.vectors[3] @ pool.vectors[draw.index]))


def test_uniform_costs_nothing_but_its_exclusions(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(6, 50)
    mechanism = UniformMechanism(embedding)
    rng = SeededRandomness(2)
    draw = mechanism.draw("x", pool, [], NONE, rng)
    assert (draw.epsilon, draw.delta, draw.metric) == (0.0, 0.0, "none")
    barred = mechanism.draw("x", pool, range(10), Exclusions(frozenset({20}), 2), rng)
    assert barred.epsilon == pytest.approx(math.log(40 / 38))
    assert barred.delta == pytest.approx(2 / 38)
    assert mechanism.probabilities("x", pool, [0]).tolist() == [0.0, *[pytest.approx(1 / 49)] * 49]


def test_nothing_left_is_an_exhausted_pool(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(6, 3)
    rng = SeededRandomness(2)
    for mechanism in (UniformMechanism(embedding), make_mechanism("paper", embedding, theta=0.99)):
        with pytest.raises(PoolExhausted, match="person.given") as caught:
            mechanism.draw("Secretname", pool, [0, 1, 2], NONE, rng)
        assert "Secretname" not in str(caught.value)
    with pytest.raises(PoolExhausted):
        UniformMechanism(embedding).draw("x", pool, [0], lambda name: True, rng)
    only = UniformMechanism(embedding).draw("x", pool, [0, 2], NONE, rng)
    assert only.index == 1


def test_issuing_a_whole_pool_is_a_bijection(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(7, 25)
    mechanism = ExponentialMechanism(embedding, epsilon=5.0, tau=0.2)
    rng, taken = SystemRandomness(), []
    for number in range(25):
        taken.append(mechanism.draw(f"person {number}", pool, taken, NONE, rng).index)
    assert sorted(taken) == list(range(25))


def test_indices_of_a_larger_level_are_ignored_below(toy: Callable[..., Any]) -> None:
    rows = np.random.Generator(np.random.PCG64(3)).normal(size=(6, 4))
    pool = Pool.from_vectors("org", list("ABCDEF"), rows, [2, 6])
    _, embedding = toy(1, 2)
    mechanism = UniformMechanism(embedding)
    barred = Exclusions(frozenset({5, 0}), 2)
    assert mechanism.draw("x", pool, [4], barred, SeededRandomness(1)).index == 1


def test_exclusions_count_originals_and_clear_text(toy: Callable[..., Any]) -> None:
    pool, _ = toy(1, 10)
    first, second, third = pool.names[:3]
    found = exclusions(pool, [first.upper(), "Nobody", first], [f"{second} met {first}", "-"])
    assert found.indices == {0, 1}
    assert found.bound == 3
    swapped = exclusions(pool, [third, "Nobody"], [f"{second} met {third}"])
    assert swapped.bound == found.bound
    with pytest.raises(ValueError, match="below the actual"):
        Exclusions(frozenset({1, 2}), 1)


def test_exclusion_charges() -> None:
    assert exclusion_charge(0, 0.1) == (0.0, 0.0)
    epsilon, delta = exclusion_charge(2, 0.1)
    assert epsilon == pytest.approx(math.log(1 / 0.8))
    assert delta == pytest.approx(0.25)
    assert exclusion_charge(5, 0.1) == (0.0, 1.0)
    assert math.log1p(delta) == pytest.approx(epsilon)


def test_depletion() -> None:
    rows = np.random.Generator(np.random.PCG64(3)).normal(size=(10, 3))
    pool = Pool.from_vectors("org", [f"N{i}" for i in range(10)], rows, [8, 10])
    state = depletion(pool, used=2, requests=4)
    assert (state.size, state.used, state.remaining, state.reserve) == (8, 2, 6, 2)
    assert (state.share, state.requests_left) == (0.25, 12.0)
    assert depletion(pool, 0, 4).requests_left is None
    assert depletion(pool, 9, 1).remaining == 0
    with pytest.raises(ValueError, match="negative"):
        depletion(pool, -1, 1)


def test_mechanisms_are_made_by_name(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(1, 5)
    assert set(mechanism_names()) >= {"exponential", "uniform", "paper"}
    made = make_mechanism("exponential", embedding, epsilon=2.0, tau=0.3, metric="cosine")
    assert (made.name, made.metric) == ("exponential", "chordal")
    with pytest.raises(ValueError, match="already"):
        register_mechanism("uniform", UniformMechanism)
    for name, parameters, message in (
        ("laplace", {}, "unknown mechanism"),
        ("exponential", {"epsilon": 1.0}, "needs epsilon and tau"),
        ("uniform", {"epsilon": 1.0}, "uniform nothing"),
        ("paper", {}, "theta"),
        ("paper", {"theta": 2.0}, "theta must"),
        ("exponential", {"epsilon": 0.0, "tau": 0.1}, "positive"),
        ("exponential", {"epsilon": math.inf, "tau": 0.1}, "positive"),
        ("exponential", {"epsilon": 1.0, "tau": 1.1}, "tau must"),
        ("exponential", {"epsilon": 1.0, "tau": 0.1, "metric": "l1"}, "unknown metric"),
    ):
        with pytest.raises(MechanismError, match=message):
            make_mechanism(name, embedding, **parameters)
    _, other = toy(1, 5, dimension=3)
    with pytest.raises(MechanismError, match="length"):
        UniformMechanism(other).probabilities("x", pool)
