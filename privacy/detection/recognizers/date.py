"""Calendar dates that name a day. Versions, migration stamps and machine timestamps are not dates of people."""

import re
from typing import Final

from privacy.detection.recognizers.support import before
from privacy.surrogates.date_words import FULL_MONTH_PATTERN
from privacy.types import DATE, Span

_MONTH: Final = (
    r"(?:Jan(?:uary|uar)?|Feb(?:ruary|ruar)?|Mar(?:ch|s)?|M(?:ä|ae)rz|Apr(?:il)?|Ma[iy]|June?|Juni|July?|Juli|"
    r"Aug(?:ust)?|Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?|"
    r"janvier|f[ée]vrier|avril|juin|juillet|ao[ûu]t|septembre|octobre|novembre|d[ée]cembre|"
    r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)"
)
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR: Final = r"(?:1[89]|20)\d{2}"
_LEFT: Final = r"(?<![\w/.\\-])"
_RIGHT: Final = r"(?![\w/\\]|[-.]\w)"
_NUMERIC: Final = re.compile(
    rf"{_LEFT}(?:{_YEAR}(?P<s1>[-/.])(?:0?[1-9]|1[0-2])(?P=s1){_DAY}"
    rf"|{_DAY}(?P<s2>[-/.]){_DAY}(?P=s2)(?:{_YEAR}|\d\d))(?=T\d\d:|{_RIGHT})"
)
_WORDED: Final = re.compile(
    rf"(?<![\w/-])(?:{_DAY}(?:st|nd|rd|th|\.)?[ -](?:of )?(?:de )?{_MONTH}\.?(?:(?:,? |-| de ){_YEAR}|-\d\d)?"
    rf"|{_MONTH}\.? {_DAY}(?:st|nd|rd|th)?(?:,? {_YEAR})?)(?![\w-]|:\d)",
    re.I,
)
# Of other languages than those above only with a year, and in figures with their own signs.
_ABROAD: Final = re.compile(
    rf"(?<![\w/-]){_DAY}[.ºª°]?[ \u00a0-](?:de )?(?:{FULL_MONTH_PATTERN})(?:[ \u00a0-]| de ){_YEAR}(?![\w-])"
    rf"|(?<![\w/-]){_YEAR}\.? (?:{FULL_MONTH_PATTERN}) {_DAY}(?![\w-]|:\d)"
    rf"|(?<!\d){_YEAR}[年년] ?(?:0?[1-9]|1[0-2])[月월] ?{_DAY}(?=[日일])",
    re.I,
)
_BIRTH: Final = re.compile(
    r"\b(?:born|birth(?:day|date)?|dob|d\.o\.b\.?|geboren|geburtsdatum|geb\.|n[ée]e?|naissance|nacid[oa]|nacimiento)\b",
    re.I,
)
_MONTH_YEAR: Final = re.compile(rf"(?<!\w){_MONTH}\.? {_YEAR}(?!\w)", re.I)
_VERSION: Final = re.compile(r"\b(?:version|v|ver|release|build|rev|revision)\.? ?\Z", re.I)
# In lower case these are a verb and a noun: "may 5 people", "march 3 miles".
_DATE_LABEL: Final = re.compile(
    r"\b(?:date|when|appointment|visit|admitted|discharged)\b[\s:=]{1,3}\Z", re.I
)
_MONTH_OR_WORD: Final = re.compile(r"(?:may|march|mar|mars|mai|dec|oct|jan)\b")
_CLOCK: Final = re.compile(r"(?:T| {1,2})\d\d:\d\d:\d\d")


class DateRecognizer:
    """Dates with a day, in digits or words; month and year alone only beside a birth."""

    name = "date"
    types = (DATE,)

    def find(self, text: str) -> list[Span]:
        spans: list[Span] = []
        for match in _NUMERIC.finditer(text):
            score = _numeric_score(text, match)
            if score is not None:
                spans.append(Span(match.start(), match.end(), DATE, score, self.name))
        for pattern, score_alone in ((_WORDED, 0.85), (_ABROAD, 0.85), (_MONTH_YEAR, 0.0)):
            for match in pattern.finditer(text):
                birth = _BIRTH.search(before(text, match.start(), 32))
                if not birth and pattern is not _ABROAD and _MONTH_OR_WORD.search(match.group()):
                    continue
                if birth or score_alone:
                    spans.append(
                        Span(
                            match.start(),
                            match.end(),
                            DATE,
                            0.95 if birth else score_alone,
                            self.name,
                        )
                    )
        return spans


def _numeric_score(text: str, match: re.Match[str]) -> float | None:
    context = before(text, match.start(), 32)
    if _BIRTH.search(context):
        return 0.95
    if _VERSION.search(context):
        return None
    # A time to the second is a machine's; people label the line ("Date: ...") when it is theirs.
    if _CLOCK.match(text, match.end()) and not _DATE_LABEL.search(context):
        return None
    parts = [int(part) for part in re.split(r"[-/.]", match.group())]
    if match.group("s2") and parts[0] > 12 and parts[1] > 12:
        return None
    # 1.2.13 may be a version; a year of four digits is none.
    return 0.85 if max(parts) > 1000 or match.group("s2") == "/" else 0.6
