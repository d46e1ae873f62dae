"""Identifiers of records about people: files, policies, licences, employees, patients, passports.

A number says nothing by itself. What stands directly before it does ("Policy no. 77-1234-X"), and so
does a prefix that organisations use for people ("EMP-00412").
"""

import re
from typing import Final

from privacy.detection.recognizers.support import before, spoken
from privacy.types import RECORD_ID, Span

_TOKEN: Final = re.compile(
    r"(?<![\w@/.+-])(?=[A-Za-z0-9/._-]{0,12}\d)#?(?P<id>[A-Za-z0-9]{1,20}(?:[-/._][A-Za-z0-9]{1,20}){0,6})(?![\w/@]|[-.]\w|\()"
)
_GROUPED: Final = re.compile(r"(?<![\w@/.+-])\d{2,8}(?:[ \u00a0]\d{2,8}){1,4}(?![\w/@]|[-.]\w)")
_STRONG: Final = (
    r"mrn|medical record|patient(?: id| number| no)|chart|licen[cs]e|permit|passport|visa|badge|employee|emp|"
    r"personnel|staff|driver'?s? licen[cs]e|insurance|policy|claim|docket|member(?:ship)?|matric(?:ulation)?|"
    r"student|tax(?:payer)?(?: id)?|tin|ein|vat|ust-?id(?:nr)?|npi|dea|vin|imei|number plate|licen[cs]e plate|"
    r"pnr|record locator|registration|prescription|rx|subscriber|beneficiary|steuernummer|steuer-?id|personalnummer|ausweis(?:nummer)?|"
    r"reisepass|kundennummer|vertragsnummer|versicherungsnummer|aktenzeichen|matricule|dossier|p[óo]liza|expediente"
)
_WEAK: Final = (
    r"case|file|reference|ref|customer|client|patient|account|acct|contract|booking|reservation|ticket|loan|invoice|order|"
    r"company|record|id|identity|identification|serial|device|application|applicant|user|holder|matter"
)
_NUMBER_WORD: Final = r"(?:\s{0,2}[.#]|\s{1,2}(?:no|nr|num|number|id|code|ref|reference|#)\b\.?)"
_STRONG_BEFORE: Final = re.compile(
    rf"\b(?:{_STRONG})(?:{_NUMBER_WORD}){{0,2}}\s{{0,2}}(?:is|was|[:=#(-])?\s{{0,2}}[\"'#]?\Z", re.I
)
_WEAK_BEFORE: Final = re.compile(
    rf"\b(?:{_WEAK})(?:(?:{_NUMBER_WORD}){{1,2}}\s{{0,2}}(?:is|was|[:=(-])?|\s{{0,2}}[:=#])\s{{0,2}}[\"'#]?\Z",
    re.I,
)
_MARKS: Final = re.compile(r"[\\\"'`\]>|*]+[ \t]?")
_NEGATIVE: Final = re.compile(
    r"\b(?:sku|part|model|version|build|release|iso|rfc|section|page|chapter|product|item|category|line|row|"
    r"chunk|message|request|trace|span|error|status|job|run|build|port|process|thread)\b[\w .:#=]{0,8}\Z",
    re.I,
)
_PREFIXED: Final = re.compile(
    r"(?:EMP|EID|MED|MRN|POL|CLM|CUST|CLI|PAT|PT|ACC|ACCT|MEM|MBR|STU|CASE|LIC|INS|BADGE|STAFF|PERS|PID|PRN|NHS|"
    r"DL|DRV|PASS|TAX|SUB|BEN|HR|HOLD|PRESC|RX|CLAIM|POLICY|PATIENT)[-_/ ]?\d{3,12}(?:[-/][A-Z0-9]{1,6})?\Z"
)
_EIN: Final = re.compile(r"\d\d-\d{7}\Z")
_DATE_LIKE: Final = re.compile(
    r"(?:19|20)\d\d[-/.]\d\d?[-/.]\d\d?\Z|\d\d?[/.]\d\d?[/.](?:\d\d){1,2}\Z|(?:19|20)\d\d\Z"
)


class RecordIdRecognizer:
    """Tokens with digits behind a label, or with a prefix of records about people."""

    name = "record_id"
    types = (RECORD_ID,)

    def find(self, text: str) -> list[Span]:
        spans = []
        for match in _GROUPED.finditer(text):
            if _STRONG_BEFORE.search(_context(text, match.start())):
                spans.append(Span(*match.span(), RECORD_ID, 0.85, self.name))
        for match in _TOKEN.finditer(text):
            score = _score(text, match)
            if score is not None:
                spans.append(Span(*match.span("id"), RECORD_ID, score, self.name))
        return spans


def _score(text: str, match: re.Match[str]) -> float | None:
    token = match.group("id")
    digits = sum(c.isdigit() for c in token)
    # Few digits tell enough only in a code of capitals, as passports and bookings have: X4RTBPFW4.
    code = 5 <= len(token) and token.isupper() and any(c.isalpha() for c in token)
    if (digits < 3 and not code) or len(token) < 4 or _DATE_LIKE.match(token):
        return None
    context = _context(text, match.start("id"))
    if _NEGATIVE.search(context):
        return None
    if _STRONG_BEFORE.search(context):
        return 0.85
    if (digits >= 4 or code) and _WEAK_BEFORE.search(context):
        return 0.75
    if _PREFIXED.match(token):
        return 0.75
    return 0.4 if _EIN.match(token) else None


def _context(text: str, start: int) -> str:
    """Return what stands before a number; of `"patient_id": "` the marks are no words."""
    return _MARKS.sub(" ", spoken(before(text, start, 40)))
