"""The truncated pool: no finite epsilon, and the delta of the dictionary."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privacy.accounting import hockey_stick, max_divergence
from privacy.mechanisms import Exclusions, PaperMechanism
from privacy.randomness import SeededRandomness

NONE = Exclusions(frozenset(), 0)


@pytest.mark.parametrize("epsilon", [None, 5.0])
def test_delta_is_the_largest_mass_another_name_could_not_give(
    toy: Callable[..., Any], epsilon: float | None
) -> None:
    pool, embedding = toy(8, 14)
    mechanism = PaperMechanism(embedding, theta=0.6, epsilon=epsilon)
    logs = [mechanism.log_probabilities(row, pool) for row in pool.vectors]
    exact = max(hockey_stick(p, q, math.inf) for p in logs for q in logs)
    assert mechanism.dictionary_delta(pool) == pytest.approx(exact, rel=3e-5)
    assert exact > 0.1
    assert math.inf in {max_divergence(p, q) for p in logs for q in logs}


def test_substitutes_lie_below_theta_and_are_charged_without_bound(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(8, 14)
    mechanism = PaperMechanism(embedding, theta=0.6)
    rng = SeededRandomness(4)
    found = [mechanism.draw(pool.names[1], pool, [], NONE, rng) for _ in range(50)]
    assert all(draw.cosine < 0.6 for draw in found)
    assert {draw.epsilon for draw in found} == {math.inf}
    assert {draw.delta for draw in found} == {mechanism.dictionary_delta(pool)}
    likeliest = max(float(mechanism.probabilities(name, pool).max()) for name in pool.names)
    assert mechanism.largest_probability(pool, 0) == pytest.approx(likeliest, rel=3e-5)
    barred = Exclusions(frozenset(), 1)
    assert mechanism.draw(pool.names[1], pool, [], barred, rng).delta > found[0].delta
    after = mechanism.probabilities(pool.names[1], pool, [3, 4]).max()
    assert after <= mechanism.largest_probability(pool, 2)
    inside = mechanism.probabilities(pool.names[1], pool) > 0
    assert np.array_equal(inside, pool.cosines_to(pool.vectors[1]) < 0.6)
    assert mechanism.loss_bound(pool.vectors[0], pool.vectors[1]) == math.inf
