"""One shift of all dates per session, from the discrete Laplace distribution (DESIGN 3.4).

Ghosh, Roughgarden, Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms" (STOC 2009):
Pr[shift = k] is proportional to exp(-epsilon |k|), so moving all dates of a session by d days
changes any output's probability by a factor of at most exp(epsilon d).
"""

import math

from privacy.mechanisms.base import MechanismError
from privacy.mechanisms.exclusions import exclusion_charge
from privacy.mechanisms.sampling import fine_uniform
from privacy.randomness import Randomness

METRIC = "days"


def draw_shift(epsilon_per_day: float, rng: Randomness, *, never_zero: bool = False) -> int:
    """Draw a shift in days, of either sign; mean size about 1/epsilon_per_day.

    Args:
        never_zero: Redraw a shift of 0.  It costs `shift_charge`, and is off by default: a shift
            of 0 is no leak, for nobody outside can tell it from another.

    Raises:
        MechanismError: epsilon_per_day is not in (0, 20].
    """
    _check(epsilon_per_day)
    while True:
        shift = _geometric(epsilon_per_day, rng) - _geometric(epsilon_per_day, rng)
        if shift or not never_zero:
            return shift


def zero_probability(epsilon_per_day: float) -> float:
    """Return Pr[shift = 0] = (1 - a)/(1 + a) with a = exp(-epsilon_per_day)."""
    _check(epsilon_per_day)
    return math.tanh(epsilon_per_day / 2.0)


def shift_charge(epsilon_per_day: float, *, never_zero: bool = False) -> tuple[float, float]:
    """Return (epsilon per day, delta) of one session's shift.

    The metric of this account is days, and its unit the time line of the session: all dates moved
    together.  The intervals between dates stay true, hence leak.  With ``never_zero`` the time
    line itself is excluded from the outputs: one exclusion, with the probability of 0 as the
    largest there is.  The logarithmic term then comes on top once, not per day; it is added to
    the per-day figure, which is more than needed for every distance of a day or longer.
    """
    _check(epsilon_per_day)
    if not never_zero:
        return epsilon_per_day, 0.0
    more, delta = exclusion_charge(1, zero_probability(epsilon_per_day))
    return epsilon_per_day + more, delta


def _geometric(epsilon: float, rng: Randomness) -> int:
    """Return k >= 0 with probability (1 - a) a^k, a = exp(-epsilon)."""
    return int(math.floor(-math.log(fine_uniform(rng)) / epsilon))


def _check(epsilon: float) -> None:
    if not 0.0 < epsilon <= 20.0:
        raise MechanismError(f"epsilon per day must lie in (0, 20], not {epsilon}")
