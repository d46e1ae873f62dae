"""Amounts of money."""

import re
from typing import Final

from privacy.types import AMOUNT, Span

_NUMBER: Final = (
    r"\d{1,3}(?:[,.' \u00a0]\d{3}){1,5}(?:[.,]\d{1,2})?(?!\d)|\d{1,12}(?:[.,]\d{1,2})?(?!\d)"
)
_SCALE: Final = r"(?:\s?(?:k|m|mn|mio|bn|thousand|million|billion)\b)?"
_SYMBOL: Final = (
    r"(?:US\$|A\$|C\$|[$€£¥₹₽₩₪]|CHF|EUR|USD|GBP|SEK|NOK|DKK|PLN|CZK|HUF|INR|JPY|AUD|CAD)"
)
_AMOUNT: Final = re.compile(
    rf"(?<![\w$]){_SYMBOL}\s?(?:{_NUMBER}){_SCALE}(?!\w)"
    rf"|(?<![\w.,$-])(?:{_NUMBER})(?:\s?(?:k|m|bn|thousand|million|billion))?\s?"
    r"(?:[€£¥₹]|(?:CHF|EUR|USD|GBP|SEK|NOK|DKK|PLN|CZK|HUF|INR|JPY|AUD|CAD|dollars?|euros?|pounds sterling|francs?|rupees?|yen|kronor|zloty)\b)",
    re.I,
)


class AmountRecognizer:
    """A number with a currency before or behind it."""

    name = "amount"
    types = (AMOUNT,)

    def find(self, text: str) -> list[Span]:
        return [
            Span(match.start(), match.end(), AMOUNT, 0.85, self.name)
            for match in _AMOUNT.finditer(text)
            # "$1" is a shell's; a single digit of money identifies nobody.
            if sum(c.isdigit() for c in match.group()) > 1 or not match.group().startswith("$")
        ]
