"""Card verification codes, which only their label gives away."""

import re
from typing import Final

from privacy.detection.recognizers.support import group_span
from privacy.types import CVC, Span

_CVC: Final = re.compile(
    r"\b(?:cvc2?|cvv2?|card (?:verification|security) (?:code|value|number)|security code)\b"
    r"(?:\s+(?:code|number|no\.?|is|was)){0,2}\s{0,3}[:=#-]?\s{0,3}[\"'(]?(?P<code>\d{3,4})(?![\w.-]*\d)",
    re.I,
)


class CvcRecognizer:
    """Three or four digits behind "CVC", "CVV" or "security code"."""

    name = "cvc"
    types = (CVC,)

    def find(self, text: str) -> list[Span]:
        return [group_span(match, "code", CVC, 0.95, self.name) for match in _CVC.finditer(text)]
