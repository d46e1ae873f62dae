"""Bank account and routing numbers, which their label gives away."""

import re
from typing import Final

from privacy.detection.recognizers.support import PresidioPattern, digest_of, group_span, near
from privacy.types import BANK_ACCOUNT, Span

_LABEL: Final = (
    r"(?:bank(?:ing)? )?(?:account|acct|a/c|konto(?:nummer|nr)?|compte|cuenta|checking|savings|current account)"
    r"(?: (?:no|nr|num|number|#))?\.?"
)
_ACCOUNT: Final = re.compile(
    rf"\b{_LABEL}\s{{0,2}}(?:is|was|[:=#-])?\s{{0,2}}#?(?P<number>\d(?:[ -]?\d){{5,16}})(?![\w/]|[.-]\d)",
    re.I,
)
_SORT: Final = re.compile(
    r"\bsort[ -]?code\b[\s:=#is]{0,6}(?P<number>\d\d[- ]?\d\d[- ]?\d\d)(?!\d)", re.I
)
_BLZ: Final = re.compile(
    r"\b(?:blz|bankleitzahl|bsb)\b[\s:=#]{0,4}(?P<number>\d{3}[ -]?\d{2,3}(?: ?\d{2})?)(?!\d)", re.I
)
_BIC: Final = re.compile(
    r"\b(?i:bic|swift)(?i:[ /-]?(?:code|bic))?\b[\s:=#]{0,4}(?P<number>[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)(?!\w)"
)
_ROUTING_CANDIDATE: Final = re.compile(r"(?<![\w.-])\d{4}-?\d{4}-?\d(?![\w-])")
_ROUTING: Final = re.compile(r"\b(?:routing|aba|rtn|transit)\b", re.I)


class BankAccountRecognizer:
    """Account numbers, sort codes and BICs by label; ABA routing numbers with their checksum."""

    name = "bank_account"
    types = (BANK_ACCOUNT,)

    def __init__(self) -> None:
        self._aba = PresidioPattern(
            "country_specific.us.aba_routing_recognizer", "AbaRoutingRecognizer"
        )

    def find(self, text: str) -> list[Span]:
        spans = [
            group_span(match, "number", BANK_ACCOUNT, 0.85, self.name)
            for pattern in (_ACCOUNT, _SORT, _BLZ, _BIC)
            for match in pattern.finditer(text)
        ]
        digest = digest_of(text, _ROUTING_CANDIDATE)
        spans.extend(self._aba.spans(text, digest, BANK_ACCOUNT, self.name, _judge_routing))
        return spans


def _judge_routing(text: str, start: int, end: int, score: float) -> float | None:
    return 0.9 if score == 1.0 and near(text, start, end, _ROUTING) else None
