"""Payment card numbers: presidio's Luhn check over issuer ranges of ISO/IEC 7812.

A number that has a card's form and a card's context but fails the check is reported with a score
below 0.9, so that a policy can tell it from a valid one.
"""

import re
from typing import Final

from privacy.detection.recognizers.support import (
    DIGIT_RUN,
    PresidioPattern,
    digest_of,
    group_span,
    luhn,
    near,
)
from privacy.types import CREDIT_CARD, Span

_SEP: Final = r"[ -]?"
_LEFT: Final = r"(?<![\w./-])"
_RIGHT: Final = r"(?![\w/-]|\.\d)"
# Issuer ranges and lengths as published by the networks.
_VISA: Final = rf"4\d{{3}}{_SEP}\d{{4}}{_SEP}\d{{4}}{_SEP}\d{{4}}(?:{_SEP}\d{{3}})?|4\d{{12}}"
_SIXTEEN: Final = (
    r"(?:5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720|6011|64[4-9]\d|65\d{2}|62\d{2}"
    r"|35(?:2[89]|[3-8]\d)|50[0-9]{2}|5[6-8]\d{2}|6[3-9]\d{2})"
    rf"{_SEP}\d{{4}}{_SEP}\d{{4}}{_SEP}\d{{4}}(?:{_SEP}\d{{3}})?"
)
_AMEX: Final = rf"3[47]\d{{2}}{_SEP}\d{{6}}{_SEP}\d{{5}}"
_DINERS: Final = rf"3(?:0[0-5]|[68]\d)\d{{1}}{_SEP}\d{{6}}{_SEP}\d{{4}}"
_NUMBER: Final = f"{_LEFT}(?:{_VISA}|{_SIXTEEN}|{_AMEX}|{_DINERS}){_RIGHT}"

_NEAR_VALID: Final = re.compile(rf"{_LEFT}\d{{4}}[ -]?\d{{4}}[ -]?\d{{4}}[ -]?\d{{4}}{_RIGHT}")
_CONTEXT: Final = re.compile(
    r"\b(?:credit|debit|card|visa|mastercard|amex|american express|discover|diners|maestro|pan)\b",
    re.I,
)
# Issuers of other ranges (UATP, JCB of 15 digits, Maestro of 12) when the word stands right before.
_LABELLED: Final = re.compile(
    r"\b(?:card|cc|visa|mastercard|maestro|pan)(?: (?:no|nr|number|num))?\.?(?: is)?\s{0,2}[:#=]?\s{0,2}"
    r"(?P<number>\d(?:[ -]?\d){11,18})(?![\w/-]|\.\d)",
    re.I,
)


_ODD: Final = re.compile(
    r"(?<!\w)(?<!\w[._/-])\d{4}(?P<mark>[._/])\d{4}(?P=mark)\d{4}(?P=mark)\d{4}(?!\w|[._/-]\w)"
)


class CreditCardRecognizer:
    """Numbers that pass the Luhn check, and near-valid ones in a card's context."""

    name = "credit_card"
    types = (CREDIT_CARD,)

    def __init__(self) -> None:
        self._presidio = PresidioPattern(
            "generic.credit_card_recognizer",
            "CreditCardRecognizer",
            [("issuer ranges", _NUMBER, 0.3)],
        )

    def find(self, text: str) -> list[Span]:
        digest = digest_of(text, DIGIT_RUN)
        spans = self._presidio.spans(
            text, digest, CREDIT_CARD, self.name, lambda _t, _s, _e, score: min(score, 0.99)
        )
        valid = {(span.start, span.end) for span in spans}
        for match in _LABELLED.finditer(text) if digest.text else ():
            digits = match.group("number").replace(" ", "").replace("-", "")
            score = 0.95 if luhn(digits) else 0.6
            spans.append(group_span(match, "number", CREDIT_CARD, score, self.name))
        for match in _ODD.finditer(text) if digest.text else ():
            if luhn("".join(filter(str.isdigit, match.group()))):
                spans.append(Span(match.start(), match.end(), CREDIT_CARD, 0.95, self.name))
        for match in _NEAR_VALID.finditer(text) if digest.text else ():
            if match.span() not in valid and near(text, *match.span(), _CONTEXT):
                spans.append(Span(match.start(), match.end(), CREDIT_CARD, 0.6, self.name))
        return spans
