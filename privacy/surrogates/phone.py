"""Surrogates of telephone numbers: same country, kind and layout, and nobody answers.

Numbers come from the ranges that regulators keep for fiction where there are such, otherwise from
ranges that the country's plan does not assign (see `phone_ranges`).
"""

import re
from typing import Final

import phonenumbers

from privacy.randomness import Randomness
from privacy.surrogates.base import (
    DrawnSurrogate,
    SurrogateContext,
    SurrogateExhausted,
    digits,
    pick,
    redrawn,
    refill,
)
from privacy.surrogates.phone_ranges import US_AREAS, national_number
from privacy.types import PHONE

_EXTENSION: Final = re.compile(
    r"[\s,;]*(?:x|ext\.?|extension|durchwahl|#)\s*\d{1,6}\Z", re.IGNORECASE
)
_TRUNK: Final = re.compile(r"\(0\)")
# Plans tried for a national number when the session's region does not know it.
_REGIONS: Final = (
    "US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "CH", "AT", "SE", "NO", "DK", "FI", "PL", "PT",
    "IE", "CZ", "HU", "RO", "GR", "TR", "IN", "AU", "NZ", "ZA", "BR", "MX", "JP", "KR", "CN", "SG",
)  # fmt: skip
_LOCAL_DIGITS: Final = 7


class PhoneSurrogate(DrawnSurrogate):
    """Keeps prefix, separators, brackets and the length where the reserved range allows it."""

    type = PHONE

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        found = _EXTENSION.search(original)
        body = original[: found.start()] if found else original
        extension = ""
        if found:
            # The word "ext" is no part of the number and stays.
            drawn = digits(rng, sum(c.isdecimal() for c in found.group()))
            extension = re.sub(r"\d+\Z", drawn, found.group())
        return _body(body, rng, context) + extension


def _body(body: str, rng: Randomness, context: SurrogateContext) -> str:
    plain = phonenumbers.convert_alpha_characters_in_number(body)
    shown = "".join(str(int(c)) for c in plain if c.isdecimal())
    is_local = len(shown) == _LOCAL_DIGITS and "+" not in plain and context.region in ("US", "CA")
    # Fewer digits are an extension or a short code, which some plan or other would take for its own.
    is_whole = "+" in plain or len(shown) >= _LOCAL_DIGITS
    number = _parsed(plain, shown, context.region) if is_whole and not is_local else None
    if number is not None:
        own = phonenumbers.national_significant_number(number)
        if shown.endswith(own):
            return _placed(plain, len(shown) - len(own), national_number(number, rng, context))
    if is_local:
        area = _area_before(body, rng) if context.widened else ""
        return area + refill(plain, "55501" + digits(rng, 2))
    if len(shown) > _LOCAL_DIGITS and not context.widened:
        # No plan knows it: digits in front of a fictional subscriber number.
        lead = len(shown) - _LOCAL_DIGITS
        return refill(plain, "0" * lead + "55501" + digits(rng, 2))
    if len(shown) < 3:
        raise SurrogateExhausted("a telephone number of fewer than three digits has no surrogate")
    return redrawn(plain, rng)


def _area_before(body: str, rng: Randomness) -> str:
    """Return an area code and the separator that the number itself uses."""
    separator = next((char for char in body if not char.isalnum()), "-")
    return pick(rng, US_AREAS) + separator


def _parsed(plain: str, shown: str, region: str) -> phonenumbers.PhoneNumber | None:
    """Return the number under the first plan in which it is valid, or at least possible."""
    text = _TRUNK.sub("", plain)
    if shown.startswith("00") and not text.lstrip().startswith("+"):
        text = "+" + shown[2:]
    possible: phonenumbers.PhoneNumber | None = None
    for plan in dict.fromkeys((region, *_REGIONS)):
        try:
            number = phonenumbers.parse(text, plan)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return number
        # Not "possible within an area": four digits are an extension in every plan.
        reason = phonenumbers.is_possible_number_with_reason(number)
        if possible is None and reason == phonenumbers.ValidationResult.IS_POSSIBLE:
            possible = number
        if text.startswith("+"):
            break
    return possible


def _placed(plain: str, kept: int, drawn: str) -> str:
    """Keep the first ``kept`` digits of ``plain`` and write ``drawn`` over the others."""
    seen = at = 0
    while seen < kept:
        seen += plain[at].isdecimal()
        at += 1
    return plain[:at] + refill(plain[at:], drawn)
