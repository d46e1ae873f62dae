"""Composition theorems, each a pure function from charges to one (epsilon, delta).

All hold when every draw may depend on earlier outputs; docs/accounting.md says what they assume
about budgets chosen on the way.
"""

import math
from collections.abc import Sequence

import numpy as np

from privacy.accounting.charges import Charge

# Mechanisms whose log probability ratios lie in an interval of length epsilon (bounded range).
_BOUNDED_RANGE = frozenset({"exponential", "uniform"})


def basic(charges: Sequence[Charge]) -> tuple[float, float]:
    """Sums of epsilon and delta (Dwork et al. 2006)."""
    return (
        math.fsum(charge.epsilon for charge in charges),
        min(1.0, math.fsum(charge.delta for charge in charges)),
    )


def advanced(charges: Sequence[Charge], slack: float) -> tuple[float, float]:
    """Heterogeneous advanced composition with the additional failure probability ``slack``.

    Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy" (ICML 2015),
    theorem 3.5; the smaller of its last two terms, never more than the sum.
    """
    epsilons = np.array([charge.epsilon for charge in charges], dtype=np.float64)
    if not np.all(np.isfinite(epsilons)):
        return math.inf, joint_delta(charges, slack)
    drift = float(np.sum(epsilons * np.tanh(epsilons / 2.0)))
    squares = float(np.sum(epsilons**2))
    plain = drift + math.sqrt(2.0 * squares * math.log(1.0 / slack))
    inner = math.log(math.e + math.sqrt(squares) / slack)
    epsilon = min(plain, drift + math.sqrt(2.0 * squares * inner))
    return min(epsilon, float(np.sum(epsilons))), joint_delta(charges, slack)


def concentrated(charges: Sequence[Charge], slack: float) -> tuple[float, float]:
    """Zero-concentrated privacy, converted with the failure probability ``slack``.

    Per draw rho = epsilon^2/8 for bounded-range mechanisms (Cesar and Rogers, "Bounding,
    Concentrating, and Truncating", ALT 2021) and epsilon^2/2 for others (Bun and
    Steinke, TCC 2016, proposition 1.4); the rhos add up, exclusions make it approximate
    zCDP with their deltas (ibid., section 8).
    """
    rho = math.fsum(rho_of(charge) for charge in charges)
    return rho_to_epsilon(rho, slack), joint_delta(charges, slack)


def rho_of(charge: Charge) -> float:
    """Return the zCDP parameter of one charge."""
    share = 8.0 if charge.mechanism in _BOUNDED_RANGE else 2.0
    return charge.epsilon**2 / share


def rho_to_epsilon(rho: float, delta: float) -> float:
    """Return the smallest epsilon found such that rho-zCDP gives (epsilon, delta)-privacy.

    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (NeurIPS 2020),
    proposition 12, over a grid of orders: every order is valid.

    Raises:
        ValueError: delta is not in (0, 1).
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"the slack must lie in (0, 1), not {delta}")
    if rho <= 0.0:
        return 0.0
    if not math.isfinite(rho):
        return math.inf
    orders = 1.0 + np.geomspace(1e-3, 1e6, 2_000)
    over = orders - 1.0
    bounds = orders * rho + (math.log(1.0 / delta) - np.log(orders)) / over
    bounds += np.log1p(-1.0 / orders)
    return max(0.0, float(bounds.min()))


def joint_delta(charges: Sequence[Charge], slack: float) -> float:
    """Return 1 - (1 - slack) prod (1 - delta_i)."""
    if any(charge.delta >= 1.0 for charge in charges):
        return 1.0
    log_success = math.log1p(-slack) + math.fsum(math.log1p(-c.delta) for c in charges)
    return -math.expm1(log_success)
