"""Surrogates of IBANs and of bank account and routing numbers."""

import re
from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, digits, like, redrawn, refill
from privacy.surrogates.checks import iban_check
from privacy.types import BANK_ACCOUNT, IBAN

# How many characters of the account part name the bank (SWIFT IBAN registry); 4 elsewhere.
_BANK_LENGTH: Final = {
    "AE": 3, "AT": 5, "BE": 3, "CH": 5, "CY": 3, "DE": 8, "EE": 2, "FI": 3, "FR": 5, "GR": 3,
    "HU": 3, "IL": 3, "IS": 4, "IT": 6, "LI": 5, "LT": 5, "LU": 3, "MC": 5, "PL": 8, "RS": 3,
    "SE": 3, "SI": 5, "SM": 6, "TR": 5,
}  # fmt: skip
_ROUTING: Final = re.compile(r"\d{4}-?\d{4}-?\d\Z")
_ROUTING_WEIGHTS: Final = (3, 7, 1, 3, 7, 1, 3, 7)
# Federal Reserve routing symbols run 00-12, 21-32, 61-72 and 80; 13-20 are none.
_NO_DISTRICT: Final = "19"


class IbanSurrogate(DrawnSurrogate):
    """Same country, length, character classes and grouping; mod-97 valid; the code of no bank.

    The bank code is all zeros (all X where it has letters), which stands for no bank.  Check digits
    inside the account part, which some countries have, are left to chance, and in Belgium, where
    000 is the postal giro, they are made to be wrong: no such account can exist.
    """

    type = IBAN

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        compact = "".join(char for char in original if char.isalnum()).upper()
        country, account = compact[:2], compact[4:]
        if not re.fullmatch(r"[A-Z]{2}\d\d[A-Z0-9]{8,30}", compact):
            return redrawn(original, rng)
        size = _BANK_LENGTH.get(country, 4)
        bank = "".join("X" if char.isalpha() else "0" for char in account[:size])
        drawn = bank + "".join(like(char, rng) for char in account[size:])
        if country == "BE" and _belgian_check(drawn):
            drawn = drawn[:-1] + str((int(drawn[-1]) + 1) % 10)
        whole = country + iban_check(country, drawn) + drawn
        return refill(original, whole.lower() if original.islower() else whole)


def _belgian_check(account: str) -> bool:
    return account.isdigit() and (int(account[:10]) % 97 or 97) == int(account[10:])


class BankAccountSurrogate(DrawnSurrogate):
    """Other digits in the same pattern.

    A routing number keeps its checksum under a district that does not exist.  A plain account
    number has neither a check nor a reserved range: without the bank's code, which is replaced
    too, it belongs to no account in particular.
    """

    type = BANK_ACCOUNT

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        if _ROUTING.match(original) and _routing_valid(original.replace("-", "")):
            body = _NO_DISTRICT + digits(rng, 6)
            return refill(original, body + _routing_digit(body))
        return redrawn(original, rng)


def _routing_digit(body: str) -> str:
    """Return the check digit of eight digits (American Bankers Association)."""
    return str(-sum(w * int(c) for w, c in zip(_ROUTING_WEIGHTS, body, strict=True)) % 10)


def _routing_valid(number: str) -> bool:
    return _routing_digit(number[:8]) == number[8]
