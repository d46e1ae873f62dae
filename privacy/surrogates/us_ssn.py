"""Surrogates of US social security numbers.

The Social Security Administration gives out no number that begins with 900 to 999, since 2011 as
before (its notes on randomized assignment).  The tax office uses that area for its own numbers, but
with 50 and above as the middle two digits (ITIN 50-65, 70-88, 90-92, 94-99; ATIN 93), so 9xx with
01 to 49 is nobody's.
"""

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, refill
from privacy.types import US_SSN


class SsnSurrogate(DrawnSurrogate):
    """Keeps the separators; area 900 to 999, group 01 to 49, serial 0001 to 9999."""

    type = US_SSN

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        # 987-65-4320 to -4329 are kept for advertising and known to filters; their group is 65.
        area, group, serial = 900 + rng.below(100), 1 + rng.below(49), 1 + rng.below(9999)
        return refill(original, f"{area}{group:02d}{serial:04d}")
