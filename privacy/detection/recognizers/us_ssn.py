"""US social security numbers: presidio's pattern and its rules for impossible numbers."""

import re
from typing import Final

from privacy.detection.recognizers.support import PresidioPattern, digest_of, near
from privacy.types import US_SSN, Span

_CANDIDATE: Final = re.compile(r"(?<![\w./+-])\d{3}([ .-]?)\d{2}\1\d{4}(?![\w/]|[.-]\d)")
_CONTEXT: Final = re.compile(r"\b(?:ssns?|social(?: security)?|ss ?#|ssid)\b", re.I)
_NEGATIVE: Final = re.compile(r"\b(?:sku|part|order|invoice|model|serial)\b", re.I)


class UsSsnRecognizer:
    """Grouped numbers by form, ungrouped ones only by context, near-valid ones with a low score."""

    name = "us_ssn"
    types = (US_SSN,)

    def __init__(self) -> None:
        self._presidio = PresidioPattern("country_specific.us.us_ssn_recognizer", "UsSsnRecognizer")

    def find(self, text: str) -> list[Span]:
        digest = digest_of(text, _CANDIDATE)
        spans = self._presidio.spans(text, digest, US_SSN, self.name, _judge)
        found = {(span.start, span.end) for span in spans}
        for match in _CANDIDATE.finditer(text):
            # 123-45-6789 and 000-12-3456 are never issued, yet people write them for real ones.
            if match.span() not in found and match.group(1) and near(text, *match.span(), _CONTEXT):
                spans.append(Span(match.start(), match.end(), US_SSN, 0.6, self.name))
            elif match.span() not in found and match.group(1) == "-":
                spans.append(Span(match.start(), match.end(), US_SSN, 0.5, self.name))
        return spans


def _judge(text: str, start: int, end: int, _score: float) -> float | None:
    context = near(text, start, end, _CONTEXT)
    if text[start:end].isdigit():
        return 0.85 if context else None
    if context:
        return 0.97
    if _NEGATIVE.search(text[max(0, start - 20) : start]):
        return None
    return 0.85 if "-" in text[start:end] else 0.4
