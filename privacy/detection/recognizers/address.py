"""Postal addresses: street and number, with unit, postcode and city where they follow."""

import re
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.recognizers.support import before
from privacy.types import LOC, Span

_WAY: Final = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Place|Pl|Square|Sq|Terrace|"
    r"Way|Close|Crescent|Highway|Hwy|Parkway|Pkwy|Circle|Cir|Gardens|Grove|Mews|Row|Walk|Quay|Alley|Loop|Trail|Turnpike)"
)
_CAP: Final = r"[^\W\d_a-zà-öø-ÿ][\w'’-]{0,40}\.?"
_UNIT: Final = r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl|Room|#)\.? ?#?[\w-]{1,6})?"
_CITY: Final = rf"{_CAP}(?:[ -]{_CAP}){{0,2}}"
_UK_CODE: Final = r"[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}"
_TAIL: Final = rf"(?:,? (?:{_CITY},? )?(?:[A-Z]{{2}},? \d{{5}}(?:-\d{{4}})?|{_UK_CODE}|\d{{5}}(?:-\d{{4}})?|[A-Z]\d[A-Z] \d[A-Z]\d)(?!\w))?"
_CONTINENTAL: Final = rf"(?:,? (?:[A-Z]{{1,2}}-)?\d{{4,5}} {_CITY})?"

_ENGLISH: Final = re.compile(
    rf"(?<![\w.,/-])(?:(?:Flat|Unit|Apt|Apartment|Suite) [\w-]{{1,5}},? )?\d{{1,5}}[A-Za-z]?(?:-\d{{1,4}})? "
    rf"(?:[NSEW]\.? |(?:North|South|East|West) )?(?:(?:{_CAP}|\d{{1,3}}(?:st|nd|rd|th)) ){{1,4}}{_WAY}\b\.?{_UNIT}{_TAIL}"
)
_ENGLISH_LOWER: Final = re.compile(
    r"(?<![\w.,/-])\d{1,5} (?P<words>[a-z'-]{3,20}(?: [a-z'-]{3,20})?) (?:street|avenue|lane|road|drive|boulevard|crescent)\b"
)
# Anchored on the ending and read backwards: a word of unknown length before it would be quadratic.
_GERMAN: Final = re.compile(
    rf"(?i:stra(?:ß|ss)e|str\.|weg|platz|allee|gasse|ring|damm|ufer|chaussee|"
    rf"straat|laan|plein|gracht|kade|gade|vej|gatan|vägen|katu) \d{{1,4}} ?[a-hA-H]?(?!\w){_CONTINENTAL}"
)
_GERMAN_HEAD: Final = re.compile(
    rf"(?<!\w)(?:{_CAP}[ -])?[^\W\d_a-zà-öø-ÿ][\w-]{{0,40}}\Z|(?<!\w){_CAP}[ -]\Z"
)
_GERMAN_LEAD: Final = re.compile(
    rf"(?<!\w)(?:Am|An der|An den|Auf der|Auf dem|Im|In der|Unter den|Zum|Zur|Hinter der) {_CAP} \d{{1,4}}[a-h]?(?!\w){_CONTINENTAL}"
)
_FRENCH: Final = re.compile(
    r"(?<![\w.,/-])\d{1,4}(?: ?(?:bis|ter|[A-D]))?,? (?i:rue|avenue|boulevard|place|chemin|impasse|all[ée]e|quai|cours|route) "
    rf"(?:(?:de la|de l['’]|du|des|de|d['’]|la|le|les) ?)?{_CAP}(?:[ -](?:de |du |des )?{_CAP}){{0,3}}{_CONTINENTAL}"
)
_ROMANCE: Final = re.compile(
    r"(?<!\w)(?:(?i:calle|avenida|avda\.|plaza|paseo|carrer|viale|piazza|rua|travessa)|Av\.|Via|Corso) "
    rf"(?:(?:de la|de los|de las|del|della|dei|de|do|da) )?{_CAP}(?: (?:de |y |e )?{_CAP}){{0,3}},? (?:n[ºo°]\.? ?)?\d{{1,4}}(?!\w){_CONTINENTAL}"
)
_WITH_UNIT: Final = re.compile(
    rf"(?<![\w.,/-])\d{{1,5}} (?:{_CAP} ){{1,3}}(?:\d{{1,4}} )?(?:Apt|Apartment|Suite|Ste|Unit|Flat)\.? ?#?[\w-]{{1,6}}"
)
_BOX: Final = re.compile(rf"(?<!\w)P\.? ?O\.? Box \d{{1,6}}{_TAIL}")
_CITY_ZIP: Final = re.compile(rf"(?<!\w){_CITY}, [A-Z]{{2}} \d{{5}}(?:-\d{{4}})?(?!\w)")
_UK_ALONE: Final = re.compile(rf"(?<![\w-]){_UK_CODE}(?![\w-])")
_LABELLED_CODE: Final = re.compile(
    r"\b(?:zip(?: ?code)?|post(?:al)? ?code|plz|postleitzahl|code postal|cap)\b[\s:=#is]{1,5}(?P<code>\d{4,5}(?:-\d{4})?|[A-Z]\d[A-Z] ?\d[A-Z]\d)(?!\w)",
    re.I,
)
_NOT_ADDRESS: Final = re.compile(
    r"\b(?:section|sec|chapter|page|step|line|version|figure|table|top|the|version)\.? ?\Z", re.I
)

_PATTERNS: Final = (
    (_ENGLISH, 0.9), (_WITH_UNIT, 0.85), (_GERMAN_LEAD, 0.7), (_FRENCH, 0.9), (_ROMANCE, 0.85),
    (_BOX, 0.9), (_CITY_ZIP, 0.9), (_UK_ALONE, 0.7),
)  # fmt: skip


class AddressRecognizer:
    """Street addresses of the English, German, Dutch, Nordic and Romance forms; postcodes in context."""

    name = "address"
    types = (LOC,)

    def find(self, text: str) -> list[Span]:
        spans = []
        for pattern, score in _PATTERNS:
            for match in pattern.finditer(text):
                if not _NOT_ADDRESS.search(before(text, match.start(), 16)):
                    spans.append(Span(match.start(), match.end(), LOC, score, self.name))
        for match in _GERMAN.finditer(text):
            head = _GERMAN_HEAD.search(text, max(0, match.start() - 64), match.start())
            if head is not None or text[match.start()].isupper():
                start = head.start() if head is not None else match.start()
                spans.append(Span(start, match.end(), LOC, 0.9, self.name))
        for match in _ENGLISH_LOWER.finditer(text):
            if not all(is_common_word(word) for word in match.group("words").split()):
                spans.append(Span(match.start(), match.end(), LOC, 0.6, self.name))
        spans.extend(
            Span(*match.span("code"), LOC, 0.8, self.name)
            for match in _LABELLED_CODE.finditer(text)
        )
        return spans
