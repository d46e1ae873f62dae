"""From raw candidates to spans that do not overlap.

The rule, in order; it depends on the set of candidates only, never on their order:

1. **Tidy.** Named spans grow to whole words, lose punctuation, white space and a possessive at their
   edges and are cut where a sentence ends; a PERSON is also cut at a spaced dash ("Chris Mbeki -
   chris" is the name only).
2. **Agree.** The same range and type from several recognizers counts as independent evidence:
   1 - product of (1 - score). Then the threshold of the type applies.
3. **Join.** PERSON spans with nothing but blanks, an initial or a particle between them are one person
   ("Ilse   Varga"), never across a dash, a comma or a line, never two full names.
4. **Rank.** First identifiers with a form or checksum that is beyond doubt (structured, score >= 0.9);
   within a rank by score x length, then length, start, type and recognizer.
5. **Place.** Best first. A candidate that meets what stands already
   - of the same type: widens it to the union (named types only if not much less certain);
   - both structured: widens it to the union under the winner's type, so nothing is left over;
   - otherwise keeps what is outside, if that is still a name: from ORG "Varga Dental Supplies hired
     Ilse" (0.10) and PERSON "Ilse" (0.99) come ORG "Varga Dental Supplies" and PERSON "Ilse".
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.escapes import DECODED
from privacy.detection.wordlists import family_names, given_names
from privacy.restoration.borders import after_escape
from privacy.types import ENTITY_TYPES, NAMED_TYPES, PERSON, STRUCTURED_TYPES, Span

DEFAULT_THRESHOLD: Final = 0.5
CERTAIN: Final = 0.9
# A longer named span of the same type may be this much less certain and still widen the winner.
_SLACK: Final = 0.35

_EDGE_LEFT: Final = " \t\r\n\u00a0,;:.!?)]}\"'“”‘’*_>|—–-/&#~"
_EDGE_RIGHT: Final = " \t\r\n\u00a0,;:!?([{\"'“”‘’*_<|—–-/&#~"
_POSSESSIVE: Final = re.compile(r"['’]s?\Z")
_ABBREVIATION: Final = re.compile(
    r"(?:(?<![^\W_])[^\W\d_]|[^\W\d_]\.[^\W\d_]|\b(?:Inc|Corp|Co|Ltd|Jr|Sr|Bros|Kft|Zrt|Lda|V|Mr|St))\.\Z"
)
_DASH: Final = re.compile(r"\s+[-–—|]+\s+|\s*[\r\n]{2,}\s*|[,;]?\s*\n(?=\S)|\t+")
_PARTICLE: Final = "van|von|der|den|de|del|della|di|da|dos|la|le|ten|ter|bin|al|el"
# A nickname in quotes stands inside a name: Ilse "Izzy" Varga.
_JOINT: Final = re.compile(
    rf"[\"”)]?[ \t\u00a0]+[\"“(]?(?:[^\W\d_]\.?[ \t]+|(?:{_PARTICLE})[ \t]+){{0,2}}\Z"
)
_NAME_GOES_ON: Final = re.compile(r"\)[ \t\u00a0]+[^\W\d_a-z]")
_SENTENCE_BREAK: Final = re.compile(r"(?<=[a-zà-öø-ÿ]{3})[.!?]\s+(?=[^\W\d_a-z])")
_SHORT_FORM: Final = re.compile(
    r"\b(?:Corp|Bros|Prof|Capt|Hosp|Univ|Dept|Assn|Inst|Intl|Natl|Comp)\Z"
)
_ORDER: Final = {name: index for index, name in enumerate(ENTITY_TYPES)}
_MOST_NAME_WORDS: Final = 5


def resolve(
    text: str, candidates: Iterable[Span], thresholds: Mapping[str, float] | None = None
) -> list[Span]:
    """Return the spans that remain: inside ``text``, sorted by start, without overlaps.

    Args:
        text: The text that the offsets (code points) refer to.
        candidates: Raw spans of any source; they may overlap and repeat.
        thresholds: Least score by type; 0.5 for a type that is not named.

    Raises:
        ValueError: A candidate lies outside the text or is empty.
    """
    tidy = [piece for span in candidates for piece in _tidied(text, span)]
    agreed = _agree(tidy)
    if thresholds is not None:
        agreed = [s for s in agreed if s.score >= thresholds.get(s.type, DEFAULT_THRESHOLD)]
    joined = _joined(text, agreed)
    return _placed(text, sorted(joined, key=_rank))


def _rank(span: Span) -> tuple[int, float, int, int, int, str]:
    certain = span.type in STRUCTURED_TYPES and span.score >= CERTAIN
    length = span.end - span.start
    return (
        0 if certain else 1,
        -round(span.score * length, 9),
        -length,
        span.start,
        _ORDER.get(span.type, len(_ORDER)),
        span.recognizer,
    )


def _tidied(text: str, span: Span) -> list[Span]:
    if not 0 <= span.start < span.end <= len(text):
        raise ValueError(
            f"recognizer {span.recognizer!r} reported {span.start}..{span.end} "
            f"in a text of {len(text)} characters"
        )
    if span.type not in NAMED_TYPES or span.recognizer.endswith(DECODED):
        return [span]
    start, end = _whole_words(text, span.start, span.end)
    ranges = _sentences(text, start, end)
    if span.type == PERSON:
        ranges = [piece for low, high in ranges for piece in _cut(text, low, high)]
    pieces = (_trim(text, low, high) for low, high in ranges)
    return [replace(span, start=low, end=high) for low, high in pieces if low < high]


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    for _ in range(40):
        if start == 0 or not (text[start - 1].isalnum() and text[start].isalnum()):
            break
        if after_escape(text, start):
            break
        start -= 1
    for _ in range(40):
        if end == len(text) or not (text[end].isalnum() and text[end - 1].isalnum()):
            break
        end += 1
    return start, end


def _sentences(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a named span where one sentence ends and another begins."""
    pieces, low = [], start
    for match in _SENTENCE_BREAK.finditer(text, start, end):
        if not _SHORT_FORM.search(text, low, match.start()):
            pieces.append((low, match.start()))
            low = match.end()
    return [*pieces, (low, end)]


def _cut(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Cut a PERSON at spaced dashes and blank lines, and at a line break between two full names."""
    pieces, low = [], start
    for match in _DASH.finditer(text, start, end):
        wrapped = (
            "\n" in match.group()
            and match.group().count("\n") == 1
            and not match.group().startswith((",", ";"))
        )
        short = (
            len(text[low : match.start()].split()) < 2 or len(text[match.end() : end].split()) < 2
        )
        if wrapped and short:
            continue
        pieces.append((low, match.start()))
        low = match.end()
    pieces.append((low, end))
    return [(a, b) for a, b in pieces if a < b]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Drop from both edges what surrounds a name and is no part of it."""
    while start < end:
        if text[start] in _EDGE_LEFT:
            start += 1
        elif text[end - 1] in _EDGE_RIGHT or _stray_end(text, start, end):
            end -= 1
        elif _opens_around(text, start, end):
            start += 1
        else:
            possessive = _POSSESSIVE.search(text, start, end)
            if possessive is None:
                break
            end = possessive.start()
    return start, end


def _stray_end(text: str, start: int, end: int) -> bool:
    """Tell whether the last character is a full stop of the sentence or a bracket without its fellow."""
    last = text[end - 1]
    if last == ".":
        return not _ABBREVIATION.search(text, start, end)
    return last in ")]}" and text.count(_opening(last), start, end) == 0


def _opens_around(text: str, start: int, end: int) -> bool:
    """Tell whether a bracket at ``start`` belongs to the sentence: "(Ilse Varga" and "(Ilse Varga)"."""
    if text[start] not in "([{":
        return False
    closing = {"(": ")", "[": "]", "{": "}"}[text[start]]
    return text.find(closing, start, end - 1) < 0


def _opening(closing: str) -> str:
    return {")": "(", "]": "[", "}": "{"}[closing]


def _agree(spans: Sequence[Span]) -> list[Span]:
    """Combine equal ranges of one type; the name is that of the strongest recognizer."""
    groups: dict[tuple[int, int, str], dict[str, float]] = {}
    for span in spans:
        by_name = groups.setdefault((span.start, span.end, span.type), {})
        by_name[span.recognizer] = max(by_name.get(span.recognizer, 0.0), span.score)
    combined = []
    for (start, end, type_), by_name in sorted(groups.items()):
        ordered = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))
        score = ordered[0][1]
        if len(ordered) > 1:
            doubt = 1.0
            for _, one in ordered:
                doubt *= 1.0 - one
            score = max(score, min(0.999, round(1.0 - doubt, 9)))
        combined.append(Span(start, end, type_, score, ordered[0][0]))
    return combined


def _joined(text: str, spans: Sequence[Span]) -> list[Span]:
    """Join PERSON spans that are one name."""
    people = sorted((s for s in spans if s.type == PERSON), key=lambda s: (s.start, s.end))
    rest = [s for s in spans if s.type != PERSON]
    result: list[Span] = []
    for span in people:
        last = result[-1] if result else None
        if last is not None and last.end < span.start and _one_name(text, last, span):
            result[-1] = replace(last, end=span.end, score=max(last.score, span.score))
        else:
            result.append(span)
    # The parts stay beside the joined span; they lie inside it and change nothing.
    return rest + result


def _one_name(text: str, left: Span, right: Span) -> bool:
    if right.start - left.end > 24 or not _JOINT.match(text, left.end, right.start):
        return False
    # A bracket holds a nickname only inside a name: "Ilse (Izzy) Varga", not "Varga (Ilse) signed".
    if "(" in text[left.end : right.start] and not _NAME_GOES_ON.match(text, right.end):
        return False
    lefts, rights = text[left.start : left.end].split(), text[right.start : right.end].split()
    if len(lefts) + len(rights) > _MOST_NAME_WORDS or (len(lefts) > 1 and len(rights) > 1):
        return False
    return not text[left.start : left.end].endswith(("Jr.", "Sr.", "III"))


class _Placed:
    """Accepted spans, sorted by start and free of overlaps."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._starts: list[int] = []

    def hits(self, start: int, end: int) -> list[int]:
        """Return the indexes of the spans that overlap a range."""
        index = bisect_left(self._starts, start)
        if index and self.spans[index - 1].end > start:
            index -= 1
        found = []
        while index < len(self.spans) and self.spans[index].start < end:
            found.append(index)
            index += 1
        return found

    def add(self, span: Span) -> None:
        index = bisect_left(self._starts, span.start)
        self.spans.insert(index, span)
        self._starts.insert(index, span.start)

    def widen(self, index: int, start: int, end: int) -> None:
        """Grow one span, as far as its neighbours leave room."""
        span = self.spans[index]
        if index:
            start = max(start, self.spans[index - 1].end)
        if index + 1 < len(self.spans):
            end = min(end, self.spans[index + 1].start)
        self.spans[index] = replace(span, start=min(span.start, start), end=max(span.end, end))
        self._starts[index] = self.spans[index].start


def _placed(text: str, ranked: Iterable[Span]) -> list[Span]:
    placed = _Placed()
    for candidate in ranked:
        hits = placed.hits(candidate.start, candidate.end)
        if not hits:
            placed.add(candidate)
        elif len(hits) == 1 and _unites(placed.spans[hits[0]], candidate):
            placed.widen(hits[0], candidate.start, candidate.end)
        else:
            _place_rest(text, placed, candidate, [placed.spans[index] for index in hits])
    return placed.spans


def _unites(winner: Span, loser: Span) -> bool:
    if winner.type == loser.type:
        return winner.type not in NAMED_TYPES or loser.score >= winner.score - _SLACK
    return winner.type in STRUCTURED_TYPES and loser.type in STRUCTURED_TYPES


def _place_rest(text: str, placed: _Placed, candidate: Span, taken: Sequence[Span]) -> None:
    """Keep the stretches of ``candidate`` that ``taken`` leaves free, where they still mean something."""
    edges = [candidate.start, *(e for s in taken for e in (s.start, s.end)), candidate.end]
    for low, high in zip(edges[::2], edges[1::2], strict=True):
        low, high = max(low, candidate.start), min(high, candidate.end)
        if low >= high:
            continue
        if candidate.type in NAMED_TYPES:
            low, high = _name_part(text, low, high)
            if low >= high:
                continue
        elif sum(c.isalnum() for c in text[low:high]) < 3:
            continue
        placed.add(replace(candidate, start=low, end=high))


_WORD: Final = re.compile(r"\S+")


def _name_part(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the stretch from the first to the last word that can be part of a name; empty if none."""
    words = [m for m in _WORD.finditer(text, start, end) if _nameworthy(m.group())]
    if not words:
        return start, start
    return _trim(text, words[0].start(), words[-1].end())


def _nameworthy(word: str) -> bool:
    bare = word.strip(_EDGE_LEFT + _EDGE_RIGHT)
    if len(bare) < 2:
        return False
    if bare[0].isupper():
        return True
    fold = bare.casefold()
    return not is_common_word(fold) and (fold in given_names() or fold in family_names())
