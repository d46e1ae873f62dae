"""Names known to the name lists, in any case: "pls ask ilse varga", "SIGNED: ILSE VARGA", "Varga, Ilse".

The tagger reads context and is strong on capitals; this is the complement that needs neither. Two
list words in a row are evidence, one is only a hint (scores below the usual thresholds).
"""

import re
from collections.abc import Iterator
from typing import Final

from privacy.detection.recognizers.names import (
    FUNCTION_WORDS,
    WORD,
    Word,
    blanks_between,
    initial_between,
    make_word,
)
from privacy.detection.sentences import sentence_start
from privacy.types import PERSON, Span

_COMMA: Final = re.compile(r",[ \t]{0,3}\Z")
_NICKNAMED: Final = re.compile(
    r"(?<!\w)(?P<left>[^\W\d_]{2,24}) [\"“'‘(][^\W\d_]{2,24}[\"”'’)] (?P<right>[^\W\d_]{2,32})(?!\w)"
)
_IN_CODE: Final = re.compile(r"[\w/\\@#$%=<>{}\[\]]\Z")
_CODE_AFTER: Final = re.compile(r"[\w/\\@(=\[{<]|\.\w|::|->|[-'’]\w")
_CAPITAL_BEFORE: Final = re.compile(r"[^\W\d_a-z][\w'’.-]*[ \t]{1,3}\Z|[\d\"“#*_|:][ \t]?\Z")
_CAPITAL_AFTER: Final = re.compile(r"[ \t]{1,3}[^\W\d_a-z]|[ \t]?[\d:|=*_\"]|-\d")
# Family names by their form, inflected or not: "Wiśniewskiego", "Nováková", "Þorsteinsdóttir".
_FORMED: Final = re.compile(
    r"(?<![\w./\\@-])(?:(?-i:[^\W\d_a-z])[^\W\d_]{1,20}[ \t])?(?!(?:Polsk|Alaska|Nebraska|Itasca|Tupolev))[^\W\d_a-z][^\W\d_]{1,20}"
    r"(?:[wńnlz](?:sk|ck)(?:i|a|ą|iego|iemu|im|iej)|wicz(?:a|em|owi)?|czyk(?:a|iem|owi)?|ov[áé]|ovou|"
    r"[oe]vi[ćc]|oğlu|escu|opoulos|shvili|s?dóttir)(?!\w)(?![/\\@(]|\.\w)"
)
# Given names that are places more often; the tagger's context decides on those.
_PLACES: Final = frozenset(
    "paris london madison austin dallas georgia virginia carolina florence sydney charlotte jordan chad "
    "kenya india israel asia america brooklyn savannah geneva vienna milan verona valencia lorraine "
    "adelaide victoria alexandria santiago diego francisco lincoln houston denver phoenix cleveland "
    "washington jackson trenton chelsea montana dakota alabama tennessee eden troy orlando salvador "
    "odessa sofia petra lourdes santa barbara monica jose juan luis angeles antonio maria mercedes oracle "
    "julia ada java persia ireland england britain brittany normandy roma siena vale rio".split()
)
# In front of a name these are no given name: "Mrs" in "Mrs O'Hara".
_TITLES: Final = frozenset("mr mrs ms mx dr prof herr frau mme mlle capt sgt lt col rev".split())
_SUFFIX: Final = re.compile(r",?[ \t](?:Jr|Sr|JR|SR|II|III|IV)\b\.?")


class PersonGazetteerRecognizer:
    """Given name and family name beside each other, in either order."""

    name = "person.gazetteer"
    types = (PERSON,)

    def find(self, text: str) -> list[Span]:
        spans: list[Span] = []
        previous: Word | None = None
        for match in WORD.finditer(text):
            if match.end() - match.start() == 1 and previous is not None:
                continue  # an initial; `initial_between` looks at it
            word = make_word(match.group(), match.start())
            listed = word.given or word.family or word.case == "title"
            if not listed or (word.fold in _TITLES and word.case != "lower"):
                previous = None
                continue
            if previous is not None:
                spans.extend(self._pair(text, previous, word))
            if word.given and not word.common and word.case == "title" and _free(text, word, word):
                score = 0.5 if _alone_in_sentence(text, word) else 0.4
                spans.append(Span(word.start, word.end, PERSON, score, self.name))
            previous = word
        spans.extend(self._nicknamed(text))
        spans.extend(Span(*m.span(), PERSON, 0.6, self.name) for m in _FORMED.finditer(text))
        return list(_joined(text, spans))

    def _nicknamed(self, text: str) -> Iterator[Span]:
        """Find a nickname in quotes between two names: Ilse "Izzy" Varga."""
        for match in _NICKNAMED.finditer(text):
            left = make_word(match.group("left"), match.start("left"))
            right = make_word(match.group("right"), match.start("right"))
            if left.given and right.family and _free(text, left, right):
                yield Span(match.start(), match.end(), PERSON, 0.85, self.name)

    def _pair(self, text: str, left: Word, right: Word) -> Iterator[Span]:
        gap = text[left.end : right.start]
        if not _free(text, left, right):
            return
        if blanks_between(text, left.end, right.start) or initial_between(
            text, left.end, right.start
        ):
            score = _score(left, right)
        elif _COMMA.match(gap):
            score = _inverted_score(left, right)
        else:
            return
        if score is not None:
            suffix = _SUFFIX.match(text, right.end)
            yield Span(left.start, suffix.end() if suffix else right.end, PERSON, score, self.name)


def _alone_in_sentence(text: str, word: Word) -> bool:
    """Tell whether a given name carries a capital that nothing but being a name explains."""
    if word.fold in _PLACES or len(word.fold) < 3 or sentence_start(text, word.start):
        return False
    return not _CAPITAL_BEFORE.search(text, max(0, word.start - 24), word.start) and not (
        _CAPITAL_AFTER.match(text, word.end)
    )


def _free(text: str, left: Word, right: Word) -> bool:
    """Tell whether the words stand in prose and not in a path, an identifier or a call."""
    before = text[max(0, left.start - 1) : left.start]
    return (
        not _IN_CODE.match(before)
        and not _CODE_AFTER.match(text, right.end)
        and not (before == "." and left.start > 1 and not text[left.start - 2].isspace())
    )


def _score(left: Word, right: Word) -> float | None:
    cases = {left.case, right.case}
    # A list name in prose is followed by verbs and pronouns that are also rare family names.
    if right.fold in FUNCTION_WORDS and cases != {"title"} and cases != {"upper"}:
        return None
    if left.given and right.family:
        return _known_score(left, right, cases)
    if cases == {"title"} and len(right.fold) > 2 and len(left.fold) > 2:
        if left.given and not left.common and not right.common:
            return 0.6
        if left.family and right.given and not left.common and not right.common:
            return 0.55
        if right.family and not right.common and not left.common:
            return 0.5
        # Families first, and rare given names: "Kovács Eszter", "Trần Quốc".
        if any((w.given or w.family) and not w.fold.isascii() for w in (left, right)):
            return None if left.common or right.common else 0.5
    return None


def _known_score(left: Word, right: Word, cases: set[str]) -> float | None:
    common = left.common + right.common
    if cases == {"title"}:
        return (0.85, 0.65, 0.35)[common]
    if cases == {"upper"}:
        return (0.8, 0.55, None)[common]
    if cases == {"lower"}:
        if min(len(left.fold), len(right.fold)) < 3:
            return None
        return 0.7 if common == 0 else (0.5 if not left.common else None)
    # "Ilse VARGA", as in French letters.
    return 0.75 if common == 0 and "lower" not in cases else (0.5 if common == 0 else None)


def _inverted_score(left: Word, right: Word) -> float | None:
    if not (left.family and right.given) or left.common or right.common:
        return None
    # Two given names with a comma are a list of people: "Maria, Anna".
    if left.given and left.case == "title":
        return 0.45
    return 0.75 if left.case == right.case != "lower" or left.case == "upper" else 0.45


def _joined(text: str, spans: list[Span]) -> Iterator[Span]:
    """Join pairs that share a word: given + middle and middle + family are one name."""
    current: Span | None = None
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if current is not None and span.start < current.end:
            if (
                span.end > current.end
                and current.score >= 0.5 <= span.score
                and "," not in text[current.start : span.end]
            ):
                current = Span(
                    current.start, span.end, PERSON, max(current.score, span.score), span.recognizer
                )
            continue
        if current is not None:
            yield current
        current = span
    if current is not None:
        yield current
