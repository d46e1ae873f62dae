"""Surrogates of payment card numbers and verification codes.

Numbers begin with an issuer prefix under which payment processors publish test numbers, so no bank
issues them; network, length and grouping stay and the Luhn check (ISO/IEC 7812-1) passes.
"""

from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, digits, pick, refill
from privacy.surrogates.checks import luhn_digit
from privacy.types import CREDIT_CARD, CVC

# (prefixes of the network, test prefixes).  The first network that fits counts.
NETWORKS: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("34", "37"), ("378282", "371449", "378734")),  # American Express
    (("300", "301", "302", "303", "304", "305", "309"), ("305693",)),  # Diners Club
    (("36",), ("362272",)),  # Diners Club International
    (("38", "39"), ("385200",)),  # Diners Club, former
    (("35",), ("356600", "353011")),  # JCB
    (("4",), ("400000", "411111", "424242")),  # Visa
    (("51", "52", "53", "54", "55"), ("555555", "510510")),  # Mastercard
    (("22", "23", "24", "25", "26", "27"), ("222300",)),  # Mastercard, second series
    (("6011", "64", "65"), ("601111", "601100")),  # Discover
    (("62",), ("620000",)),  # UnionPay
    (("50", "56", "57", "58", "6"), ("675964", "676770")),  # Maestro
)


class CardSurrogate(DrawnSurrogate):
    """Same network, length and separators; a published test prefix; Luhn-valid."""

    type = CREDIT_CARD

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        number = "".join(str(int(char)) for char in original if char.isdecimal())
        size = len(number)
        if size < 8:
            return refill(original, digits(rng, size))
        prefix = pick(rng, _test_prefixes(number))[: size - 2]
        body = prefix + digits(rng, size - 1 - len(prefix))
        return refill(original, body + luhn_digit(body))


def _test_prefixes(number: str) -> tuple[str, ...]:
    for network, tests in NETWORKS:
        if number.startswith(network):
            return tests
    # No network begins with 9: "for assignment by national bodies" (ISO/IEC 7812-1).
    return ("900000",)


class CvcSurrogate(DrawnSurrogate):
    """Other digits, as many."""

    type = CVC

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        count = sum(char.isdecimal() for char in original)
        return refill(original, digits(rng, count))
