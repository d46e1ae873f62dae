"""Totals of a ledger: all valid bounds, and the smallest by name (DESIGN 3.6)."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from privacy.accounting.charges import Charge
from privacy.accounting.composition import advanced, basic, concentrated

DAYS: Final = "days"
DEFAULT_SLACK: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Bound:
    """One (epsilon, delta) statement and the theorem it comes from."""

    name: str
    epsilon: float
    delta: float

    @property
    def finite(self) -> bool:
        """False when it says nothing: infinite epsilon, or delta 1."""
        return math.isfinite(self.epsilon) and self.delta < 1.0


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals of a set of charges.

    Attributes:
        draws: Number of charges that count (all but the days account).
        basic, advanced, zcdp: The bounds, each valid on its own.
        best: The one with the smallest epsilon; `basic` when equal.
        days: Sum of the epsilons per day, a separate account with days as its metric.
    """

    draws: int
    basic: Bound
    advanced: Bound
    zcdp: Bound
    best: Bound
    days: float


def totals(charges: Iterable[Charge], slack: float = DEFAULT_SLACK) -> Totals:
    """Add up charges.

    Args:
        slack: Failure probability that advanced composition and zCDP may add to delta.

    Raises:
        ValueError: slack is not in (0, 1).
    """
    if not 0.0 < slack < 1.0:
        raise ValueError(f"the slack must lie in (0, 1), not {slack}")
    rows = list(charges)
    counted = [row for row in rows if row.metric != DAYS]
    bounds = (
        Bound("basic", *basic(counted)),
        Bound("advanced", *advanced(counted, slack)),
        Bound("zcdp", *concentrated(counted, slack)),
    )
    best = min(bounds, key=lambda bound: (not bound.finite, bound.epsilon))
    days = math.fsum(row.epsilon for row in rows if row.metric == DAYS)
    return Totals(len(counted), *bounds, best, days)


def entity_totals(
    charges: Iterable[Charge], entity_hmac: str, slack: float = DEFAULT_SLACK
) -> Totals:
    """Add up what the charges of one or several sessions say about one entity.

    Its own draws count in full.  Draws of other entities from the same pools depend on it through
    their exclusions only: for such a draw delta = q/(1-q), hence ln(1/(1-q)) = ln(1 + delta), and
    just these two are counted.
    """
    rows = list(charges)
    types = {row.fine_type for row in rows if row.entity_hmac == entity_hmac}
    counted: list[Charge] = []
    for row in rows:
        if row.entity_hmac == entity_hmac:
            counted.append(row)
        elif row.fine_type in types and row.metric != DAYS and row.delta > 0.0:
            counted.append(replace(row, epsilon=min(row.epsilon, math.log1p(row.delta))))
    return totals(counted, slack)
