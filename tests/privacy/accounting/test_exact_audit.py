"""The audit passes right mechanisms and fails wrong ones (DESIGN 3.7)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privacy.accounting import audit_pairs, audit_pool, dictionary_pairs
from privacy.accounting.divergence import hockey_stick, max_divergence, without
from privacy.embedding import angle
from privacy.mechanisms import ExponentialMechanism, PaperMechanism, UniformMechanism
from privacy.pools import PoolSet
from privacy.randomness import SeededRandomness


class ClaimsOneMinusCosine(ExponentialMechanism):
    """Claims epsilon (1 - cos), as if that were a metric."""

    def loss_bound(self, a: np.ndarray, b: np.ndarray) -> float:
        return self.epsilon * (1.0 - float(a @ b))


class ClaimsTruncationIsFree(PaperMechanism):
    """Draws from C_theta and claims epsilon times the angle."""

    def loss_bound(self, a: np.ndarray, b: np.ndarray) -> float:
        return 5.0 * angle(a, b)

    def base_charge(self, pool: Any) -> tuple[float, float]:
        return 5.0, 0.0


class ForgetsTheHalf(ExponentialMechanism):
    """Uses epsilon where epsilon/2 belongs."""

    def log_weights(self, vector: Any, pool: Any, taken: Any) -> Any:
        return 2.0 * super().log_weights(vector, pool, taken)


class ChargesNoExclusions(ExponentialMechanism):
    """Excludes names for nothing."""

    def exclusion_charge(self, pool: Any, taken: int, count: int) -> tuple[float, float]:
        return 0.0, 0.0


class ChargesHalfThePool(ExponentialMechanism):
    """Claims that no name is likelier than in a uniform draw from ten times the pool."""

    def largest_probability(self, pool: Any, taken: int) -> float:
        return 0.1 / len(pool)


class UndercutsTheLedger(ExponentialMechanism):
    """Claims the right loss per pair but charges a tenth of it."""

    def base_charge(self, pool: Any) -> tuple[float, float]:
        return 0.1 * self.epsilon, 0.0


@pytest.mark.parametrize("metric", ["angular", "cosine"])
@pytest.mark.parametrize("epsilon", [0.5, 5.0, 30.0])
def test_the_real_mechanism_passes(toy: Callable[..., Any], metric: str, epsilon: float) -> None:
    pool, embedding = toy(9, 60)
    mechanism = ExponentialMechanism(embedding, epsilon=epsilon, tau=0.3, metric=metric)
    rng = SeededRandomness(1)
    report = audit_pool(pool, mechanism, audit_pairs(pool, 140, rng), rng)
    assert report.passed, report.findings[:3]
    assert report.pairs == 140
    assert 0.2 < report.tightness <= 1.0
    assert 0.0 < report.worst_loss <= mechanism.base_charge(pool)[0]
    assert 0.0 < report.delta_tightness <= 1.0
    assert report.as_dict()["passed"] is True


@pytest.mark.parametrize(
    ("wrong", "parameters", "check"),
    [
        (ClaimsOneMinusCosine, {"epsilon": 5.0, "tau": 0.0, "metric": "cosine"}, "full pool"),
        (ClaimsTruncationIsFree, {"theta": 0.5, "epsilon": 5.0}, "full pool"),
        (ForgetsTheHalf, {"epsilon": 5.0, "tau": 0.1}, "full pool"),
        (ChargesNoExclusions, {"epsilon": 2.0, "tau": 0.3}, "exclusions"),
        (ChargesHalfThePool, {"epsilon": 2.0, "tau": 0.3}, "exclusions"),
        (UndercutsTheLedger, {"epsilon": 5.0, "tau": 0.1}, "ledger"),
    ],
)
def test_wrong_mechanisms_fail(
    toy: Callable[..., Any], wrong: type[Any], parameters: dict[str, Any], check: str
) -> None:
    pool, embedding = toy(9, 60)
    rng = SeededRandomness(1)
    report = audit_pool(pool, wrong(embedding, **parameters), audit_pairs(pool, 140, rng), rng)
    assert not report.passed
    assert check in {finding.check for finding in report.findings}
    assert all(finding.found > finding.claimed for finding in report.findings)


def test_uniform_passes_with_no_loss_at_all(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(9, 30)
    rng = SeededRandomness(2)
    report = audit_pool(pool, UniformMechanism(embedding), audit_pairs(pool, 35, rng), rng)
    assert report.passed
    assert report.worst_loss < 1e-12
    assert report.worst_delta > 0.01


def test_the_paper_variant_is_held_to_its_delta(toy: Callable[..., Any]) -> None:
    pool, embedding = toy(9, 40)
    mechanism = PaperMechanism(embedding, theta=0.5, epsilon=3.0)
    rng = SeededRandomness(3)
    report = audit_pool(pool, mechanism, dictionary_pairs(pool, 300, rng), rng)
    assert report.passed
    assert 0.5 < report.delta_tightness <= 1.0


@pytest.mark.parametrize("fine_type", ["person.given", "loc.country", "org"])
def test_shipped_pools_pass(fine_type: str) -> None:
    pool = PoolSet.load().pool(fine_type)

    class OnlyVectors:
        dimension, fingerprint = pool.dimension, ""

        def vector(self, name: str) -> np.ndarray:
            raise AssertionError("the audit works on vectors")

    rng = SeededRandomness(4)
    mechanism = ExponentialMechanism(OnlyVectors(), epsilon=4.0, tau=0.35)
    report = audit_pool(pool, mechanism, audit_pairs(pool, 42, rng), rng)
    assert report.passed, report.findings[:3]
    assert report.tightness > 0.3


def test_divergences_of_known_distributions() -> None:
    with np.errstate(divide="ignore"):
        p, q = np.log([0.5, 0.5, 0.0]), np.log([0.25, 0.5, 0.25])
    assert max_divergence(p, q) == pytest.approx(math.log(2))
    assert max_divergence(q, p) == math.inf
    assert hockey_stick(p, q, 0.0) == pytest.approx(0.25)
    assert hockey_stick(q, p, 10.0) == pytest.approx(0.25)
    assert hockey_stick(q, p, math.inf) == pytest.approx(0.25)
    assert hockey_stick(p, q, math.log(2)) == pytest.approx(0.0)
    assert np.exp(without(q, np.array([1]))) == pytest.approx([0.5, 0.0, 0.5])
    with pytest.raises(ValueError, match="excluded"):
        without(p, np.array([0, 1, 2]))
