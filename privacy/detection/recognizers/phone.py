"""Telephone numbers: candidates by form, validity by phonenumbers, precision by context.

Digits alone are no evidence: a bare run is a number only when a word such as "call" stands near it.
Grouping is evidence (``212-555-0142``, ``(212) 555-0142``), and so are ``+`` and a trunk zero, when
phonenumbers finds a region whose plan the number fits.
"""

import re
from functools import lru_cache
from typing import Final

import phonenumbers

from privacy.detection.recognizers.support import before, near, spoken
from privacy.types import PHONE, Span

# Plans tried for numbers without a country code; the order does not matter, any fit counts.
REGIONS: Final = (
    "US", "GB", "DE", "FR", "ES", "IT", "NL", "BE", "CH", "AT", "SE", "NO", "DK", "FI", "PL", "PT",
    "IE", "CZ", "HU", "RO", "GR", "TR", "IN", "AU", "NZ", "ZA", "BR", "MX", "JP", "KR", "CN", "SG",
    "IL", "AE", "NG", "KE", "PH",
)  # fmt: skip

_EXT: Final = r"(?:\s{0,2}(?:x|ext\.?|extension|#)\s{0,2}\d{1,6}(?!\d))?"
_LEFT: Final = r"(?<![\w+./:=-])"
_RIGHT: Final = r"(?![\w/]|[-.]\d)"
_GAP: Final = r"[ .\-/\u00a0\u2009\u202f]{0,3}"
_CANDIDATE: Final = re.compile(
    rf"(?<![\w+])(?P<plus>\+\(?\d{{1,3}}\)?(?:{_GAP}\(?\d{{1,5}}\)?){{2,8}}){_EXT}{_RIGHT}"
    rf"|{_LEFT}(?P<nanp>(?:1[ .-])?(?:\(\d{{3}}\)[ .-]?|\d{{3}}[ .-])\d{{3}}[ .-]\d{{4}}){_EXT}{_RIGHT}"
    rf"|{_LEFT}(?P<trunk>(?:\(0\d{{1,5}}\)|00 ?\d{{1,3}}[ ./-]?\(0\)|00 \d{{1,3}}|00?\d{{1,5}})(?:[ ./-]{{0,3}}\d{{2,8}}){{1,5}}){_EXT}{_RIGHT}"
    rf"|{_LEFT}(?P<local>\d{{3}}[- .]\d{{4}}){_RIGHT}"
    rf"|{_LEFT}(?P<bare>\(?\d{{2,5}}\)?(?:[ .-]?\d{{2,5}}){{1,4}}){_EXT}{_RIGHT}"
)
_CONTEXT: Final = re.compile(
    r"\b(?:phone|telephone|tel|mobile|mob|cell|cellphone|call(?:ed|ing|s)?|ring|rang|dial|fax|whatsapp|sms|"
    r"text(?:ed)? (?:me|him|her|us|them|my)|hotline|line is|reach (?:me|him|her|us)|callback|handy|telefon|"
    r"t[ée]l[ée]phone|tel[ée]fono|cellulare|portable|voicemail|signal|answer(?:ing|s)?|messages? to|registered (?:number|no)|office|desk|contact (?:no|number))\b",
    re.I,
)
_NEGATIVE: Final = re.compile(
    r"\b(?:sku|isbn|issn|order|invoice|part|model|serial|version|ticket|id|ref|routing|account|acct|iban|"
    r"ssn|nhs|tax|case|policy|upc|ean|tracking|doi|rfc|pmid)\b[\s\w.:#]{0,10}\Z",
    re.I,
)
_DATE: Final = re.compile(
    r"\d{4}[-./ ]\d{1,2}[-./ ]\d{1,2}\Z|\d{1,2}[-./ ]\d{1,2}[-./ ](?:\d{4}|\d{2})\Z|(?:19|20)\d\d[- ](?:19|20)\d\d\Z"
)
# Social security numbers, and thousands with points.
_OTHER_FORM: Final = re.compile(r"\d{3}[- ]\d{2}[- ]\d{4}\Z|\d{1,3}(?:\.\d{3})+\Z")


class PhoneRecognizer:
    """Numbers with ``+``, North American grouping, a trunk zero, or a word about telephones."""

    name = "phone"
    types = (PHONE,)

    def find(self, text: str) -> list[Span]:
        spans = []
        match = _CANDIDATE.search(text)
        while match is not None:
            span = self._judge(text, match)
            if span is not None:
                spans.append(span)
            # A candidate can swallow the next number; go on behind what was accepted of it.
            match = _CANDIDATE.search(text, span.end if span else match.end())
        return spans

    def _judge(self, text: str, match: re.Match[str]) -> Span | None:
        kind = match.lastgroup or ""
        body = match.group(kind)
        start = match.start(kind)
        if kind == "plus":
            kept = _longest_valid(body)
            if kept is None:
                return None
            end = match.end() if kept == body else start + len(kept)
            return Span(start, end, PHONE, 0.95, self.name)
        if _DATE.match(body):
            return None
        score = self._score(text, match, kind, body)
        return None if score is None else Span(start, match.end(), PHONE, score, self.name)

    def _score(self, text: str, match: re.Match[str], kind: str, body: str) -> float | None:
        context = near(text, match.start(kind), match.end(), _CONTEXT)
        if _NEGATIVE.search(spoken(before(text, match.start(kind), 24))):
            return 0.6 if context and kind == "nanp" else None
        digits = "".join(filter(str.isdigit, body.replace("(0)", "")))
        if kind == "nanp":
            return 0.92 if context or _fits(digits, ("US",)) else 0.75
        if kind == "trunk":
            return _trunk_score(digits, body, context)
        if kind == "local":
            return 0.8 if context else (0.6 if body.startswith("555") and "-" in body else None)
        if not context or _OTHER_FORM.match(body) or not 7 <= len(digits) <= 15:
            return None
        return 0.85 if _fits(digits, REGIONS) else 0.6


def _trunk_score(digits: str, body: str, context: bool) -> float | None:
    if not 8 <= len(digits) <= 16:
        return None
    grouped = len(digits) != len(body)
    fits = _fits(digits, REGIONS) or (digits.startswith("00") and _fits("+" + digits[2:], ("US",)))
    if fits and context:
        return 0.95
    if fits and grouped:
        return 0.8
    if fits and len(digits) == 11 and digits.startswith("07"):
        return 0.7
    if context:
        return 0.6
    # "0033711223344" in a column of its own: the prefix is as telling as a plus sign.
    abroad = digits.startswith("00") and len(digits) > 11 and _fits("+" + digits[2:], ("US",))
    return 0.6 if abroad else None


def _longest_valid(body: str) -> str | None:
    """Return ``body`` without trailing groups that make an international number too long."""
    kept = body
    for _ in range(4):
        digits = "+" + "".join(filter(str.isdigit, kept))
        if 8 <= len(digits) <= 16 and _possible(digits):
            return kept
        cut = max(kept.rfind(separator) for separator in " .-/\u00a0")
        if cut <= 0:
            return None
        kept = kept[:cut].rstrip(" .-/\u00a0")
    return None


@lru_cache(maxsize=256)
def _region_fits(digits: str, region: str) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(digits, region))
    except phonenumbers.NumberParseException:
        return False


def _fits(digits: str, regions: tuple[str, ...]) -> bool:
    return any(_region_fits(digits, region) for region in regions)


def _possible(digits: str) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(digits, None))
    except phonenumbers.NumberParseException:
        return False
