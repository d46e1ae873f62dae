"""What noised rows cost: the account ``ppft`` of the ledger, Euclidean, never added to entities'.

The unit is the record (one prompt, one training example).  Rows have norm 1, hence two records of
the same number of slots differ by at most 2 in each row: 2ε per slot, the sum over slots per
record.  The encoder reads the whole text, so one changed word may move every slot; nothing smaller
than the record's sum is claimed for it.  The number of slots is not protected.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from privacy.accounting.charges import Charge
from privacy.ppft.noise import Noise, gaussian_scale

ACCOUNT: Final = "ppft"
METRIC: Final = "euclidean"
DELTA: Final = 1e-6  # of the conversion for Gaussian noise
_DIAMETER: Final = 2.0  # of the unit ball


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one record.

    Attributes:
        slots: Rows sent.
        epsilon_per_slot: Bound on the loss of one row, between any two unit rows.
        epsilon: Bound for the whole record, basic composition over its rows.
        delta: 0 for Laplace noise; the δ of the conversion for Gaussian noise.
    """

    slots: int
    epsilon_per_slot: float
    epsilon: float
    delta: float


def cost(slots: int, dimensions: int, noise: Noise, delta: float = DELTA) -> Cost:
    """Return what sending ``slots`` rows costs.

    Gaussian noise is accounted in zCDP, ρ = Δ²/(2σ²) per slot, which adds up over slots; the
    conversion is ε = ρ + 2√(ρ ln(1/δ)) (Bun and Steinke 2016, proposition 1.3).

    Raises:
        ValueError: slots is negative or delta is not in (0, 1).
    """
    if slots < 0 or not 0.0 < delta < 1.0:
        raise ValueError("a cost needs at least 0 slots and a delta between 0 and 1")
    if noise.mechanism == "gaussian":
        rho = _rho(dimensions, noise)
        per_slot, total = (_approximate(rho * n, delta) for n in (1, slots))
        return Cost(slots, per_slot, total, delta if slots else 0.0)
    per_slot = _DIAMETER * noise.epsilon
    return Cost(slots, per_slot, per_slot * slots if slots else 0.0, 0.0)


def together(releases: Iterable[tuple[int, int, Noise]], delta: float = DELTA) -> float:
    """Return the ε at ``delta`` of several releases of one record.

    Laplace costs add up, Gaussian ones in zCDP.

    Args:
        releases: Slots, dimensions and noise of each.
    """
    pure, rho = 0.0, 0.0
    for slots, dimensions, noise in releases:
        if noise.mechanism == "gaussian":
            rho += slots * _rho(dimensions, noise)
        else:
            pure += cost(slots, dimensions, noise).epsilon
    return pure + (_approximate(rho, delta) if rho else 0.0)


def charge(spent: Cost, noise: Noise, record: str = "") -> Charge:
    """Return the ledger row of one record; ``record`` is a keyed hash, never the record."""
    return Charge(
        f"record:{spent.slots}",
        f"ppft-{noise.mechanism}",
        METRIC,
        spent.epsilon,
        spent.delta,
        record,
    )


def _rho(dimensions: int, noise: Noise) -> float:
    """zCDP of one slot."""
    return _DIAMETER**2 / (2.0 * gaussian_scale(dimensions, noise.epsilon) ** 2)


def _approximate(rho: float, delta: float) -> float:
    return rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))
