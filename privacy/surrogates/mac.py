"""Surrogates of MAC addresses: unicast, locally administered, so no maker's and no card's.

IEEE 802-2014, clause 8: the second least significant bit of the first octet marks an address that is
administered locally.
"""

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, pick, refill
from privacy.types import MAC_ADDRESS


class MacSurrogate(DrawnSurrogate):
    """Keeps separators, grouping and case."""

    type = MAC_ADDRESS

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        count = sum(char.isalnum() for char in original)
        drawn = [pick(rng, "0123456789abcdef") for _ in range(count)]
        if count > 1:
            drawn[1] = pick(rng, "26ae")
        text = "".join(drawn)
        return refill(original, text.upper() if any(c in "ABCDEF" for c in original) else text)
