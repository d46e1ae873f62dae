"""IBANs (ISO 13616), through presidio's formats and mod-97 check."""

import re
from typing import Final

from privacy.detection.recognizers.support import Digest, PresidioPattern, near
from privacy.types import IBAN, Span

_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=[ -]?[A-Za-z0-9]{2})")
# 34 characters at most, nine separators.
_REACH: Final = 44
_STRICT: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?=(?:[ -]?[A-Za-z0-9]){0,10}[ -]?\d)(?:[ -]?[A-Za-z0-9]{4}){2,7}"
    r"(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_CONTEXT: Final = re.compile(r"\biban\b", re.I)


class IbanRecognizer:
    """Valid IBANs in either case; near-valid ones only next to the word IBAN."""

    name = "iban"
    types = (IBAN,)

    def __init__(self) -> None:
        self._presidio = PresidioPattern("generic.iban_recognizer", "IbanRecognizer")

    def find(self, text: str) -> list[Span]:
        # One region a start, overlapping: presidio's pattern swallows the words behind an IBAN.
        digest = Digest(
            text, ((m.start(), min(len(text), m.start() + _REACH)) for m in _START.finditer(text))
        )
        if not digest.text:
            return []
        # The formats are upper case only; same length either way, so offsets hold.
        digest.text = _upper(digest.text)
        spans = self._presidio.spans(
            text, digest, IBAN, self.name, lambda _t, _s, _e, score: 0.99 if score == 1.0 else None
        )
        for match in _STRICT.finditer(text):
            taken = any(match.start() < span.end and span.start < match.end() for span in spans)
            if not taken and near(text, *match.span(), _CONTEXT, 24):
                spans.append(Span(match.start(), match.end(), IBAN, 0.6, self.name))
        return spans


def _upper(text: str) -> str:
    return (
        "".join(c.upper() if c.isascii() else c for c in text)
        if not text.isascii()
        else text.upper()
    )
