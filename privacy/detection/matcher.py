"""The one matcher of the known-entity sweep and of the outbound guard.

Both ask the same question: where do these originals stand in this text? What the sweep would not
find the guard could not block, so there is one answer.

Rules:

* Texts are compared folded (see `folding`): case, normal form, accents, typographic apostrophes and
  dashes, invisible characters and the amount of white space between words make no difference.
* Whole words only. Letters and digits make words; the underscore does not, so "Varga"
  is found in ``report_varga.pdf`` and not in "Vargas", and "User1" not in "User12". A possessive and a
  hyphen end a word. Where a name ends in no letter or digit, no border is asked for.
* A name of several words is also found joined as identifiers and URLs do it: ``ilse_varga``,
  ``ilse.varga``, ``ilse-varga``, ``ilse+varga``, ``ilse%20varga``.
* A single everyday word (May, Will, Mark, Rose) needs support: a span of a detector that overlaps it,
  or a capital in mid-sentence. An original in capitals that is a word otherwise ("IT", "US") is found
  in capitals only. An original of one letter, or of fewer than five digits, needs a detector's span.
* An e-mail address is also found by its local part where that is telling by itself: it holds a
  separator or a digit, or has eight characters. Such a span has type USERNAME.
* Structured identifiers of at least six letters and digits are found with any separators between
  them ("212-555-0142", "(212) 555-0142", "2125550142"), telephone numbers also with and without
  their country code.
* Nothing inside the bytes of a data URL.
* Leftmost, then longest.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from ahocorasick_rs import AhoCorasick, MatchKind

from privacy.detection.common_words import is_common_word
from privacy.detection.folding import Folded, fold, squeeze
from privacy.detection.phone_forms import phone_forms
from privacy.detection.protected import bytes_ranges
from privacy.detection.sentences import sentence_start
from privacy.restoration.borders import UNSPACED, after_escape, char_class
from privacy.types import EMAIL, NAMED_TYPES, PERSON, PHONE, STRUCTURED_TYPES, URL, USERNAME, Span

_RECOGNIZER: Final = "known"
_JOINS: Final = ("_", ".", "-", "+", "%20")
_LEAST_SQUEEZED: Final = 6
_LEAST_FREE_DIGITS: Final = 5
_LEAST_LOCAL: Final = 5
_LEAST_JOINED: Final = 8
_LEAST_INFLECTED: Final = 4
_TELLING_LOCAL: Final = 8
_LOOSE_TYPES: Final = frozenset(STRUCTURED_TYPES) - {EMAIL, URL, USERNAME, "SECRET", "HOST"}
_ROLES: Final = frozenset(
    "info admin support sales contact office noreply no-reply no.reply donotreply help helpdesk service "
    "billing accounts postmaster webmaster root hello team mail newsletter marketing security abuse "
    "customer.service customerservice human.resources first.last firstname.lastname".split()
)
# Between the characters of one identifier: blanks and the separators people type, two at most.
_GAP: Final = re.compile(r"[ \-./()\[\]:+]{0,3}\Z")


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One folded form of an original.

    Attributes:
        form: What is searched, folded or squeezed.
        type: Type of the span it gives.
        needs: "" (nothing), "support" (a detector's span) or "capital" (that, or a capital in mid-sentence).
        exact_case: The surface must be in capitals.
    """

    form: str = field(repr=False)
    type: str
    needs: str
    exact_case: bool = False


class KnownMatcher:
    """Finds originals in texts; immutable, so one instance serves all threads.

    Args:
        originals: (surface, entity type) pairs. Empty surfaces are ignored.
    """

    def __init__(self, originals: Iterable[tuple[str, str]]) -> None:
        # One form may have several: "ROSE" is sought in capitals alone, "Rose" is not.
        words: dict[_Pattern, None] = {}
        squeezed: dict[_Pattern, None] = {}
        for surface, type_ in originals:
            words.update(dict.fromkeys(_word_patterns(surface, type_)))
            squeezed.update(dict.fromkeys(_squeezed_patterns(surface, type_)))
        self._words = tuple(words)
        self._squeezed = tuple(squeezed)
        self._word_automaton = _automaton(self._words)
        self._squeezed_automaton = _automaton(self._squeezed)

    def find(self, text: str, supported: Sequence[Span] = ()) -> list[Span]:
        """Return where originals stand, sorted by start, without overlaps.

        Args:
            text: Any text.
            supported: Spans that a detector found in ``text``; they vouch for everyday words.
        """
        if not text or (self._word_automaton is None and self._squeezed_automaton is None):
            return []
        folded = fold(text)
        found = list(self._find_words(text, folded, _Support(supported)))
        found.extend(self._find_squeezed(text, folded))
        closed = bytes_ranges(text) if found else []
        if closed:
            # What looks like a name among bytes is chance, and replacing it would break them.
            found = [s for s in found if not any(a <= s.start and s.end <= b for a, b in closed)]
        return _leftmost_longest(found)

    def _find_words(self, text: str, folded: Folded, supported: "_Support") -> Iterator[Span]:
        if self._word_automaton is None:
            return
        for index, start, end in self._word_automaton.find_matches_as_indexes(
            folded.text, overlapping=True
        ):
            pattern = self._words[index]
            low, high = folded.origin(start, end)
            if not _stands(text, low, high, folded.text, start, end, pattern):
                continue
            if pattern.exact_case:
                if not text[low:high].isupper() or not _in_mixed_case(text, low, high):
                    continue
            elif pattern.needs and not _supported(text, low, high, pattern.needs, supported):
                continue
            yield Span(low, high, pattern.type, 1.0, _RECOGNIZER)

    def _find_squeezed(self, text: str, folded: Folded) -> Iterator[Span]:
        if self._squeezed_automaton is None:
            return
        view = squeeze(folded.text)
        for index, start, end in self._squeezed_automaton.find_matches_as_indexes(
            view.text, overlapping=True
        ):
            inner = view.index[start:end]
            first, last = int(inner[0]), int(inner[-1])
            if not _squeezed_bordered(folded.text, first, last + 1, self._squeezed[index].type):
                continue
            if not _only_separators(folded.text, inner.tolist()):
                continue
            low, high = folded.origin(first, last + 1)
            low = _with_opening(text, low, high)
            yield Span(low, high, self._squeezed[index].type, 1.0, _RECOGNIZER)


def _automaton(patterns: Sequence[_Pattern]) -> AhoCorasick | None:
    if not patterns:
        return None
    return AhoCorasick([pattern.form for pattern in patterns], matchkind=MatchKind.Standard)


def _word_patterns(surface: str, type_: str) -> Iterator[_Pattern]:
    form = fold(surface).text.strip()
    if not form:
        return
    words = form.split(" ")
    yield _Pattern(form, type_, _needs(surface, form, type_), _capitals_only(surface, form))
    if len(words) > 1 and type_ in NAMED_TYPES and len(words) <= 4:
        bare = [word.strip(".,") for word in words]
        if all(bare):
            for join in _JOINS:
                yield _Pattern(join.join(bare), type_, "")
            joined = "".join(bare)
            if len(joined) >= _LEAST_JOINED and not is_common_word(joined):
                yield _Pattern(joined, type_, "")
    if type_ == EMAIL:
        yield from _local_patterns(form)


def _needs(surface: str, form: str, type_: str) -> str:
    if type_ in NAMED_TYPES:
        if len(form) < 2:
            return "support"
        return "capital" if " " not in form and is_common_word(form) else ""
    if form.isdigit() and len(form) < _LEAST_FREE_DIGITS or len(form) < 3:
        return "support"
    return "support" if is_common_word(form) else ""


def _capitals_only(surface: str, form: str) -> bool:
    return len(form) <= 5 and surface.isupper() and len(surface) > 1 and is_common_word(form)


def _local_patterns(form: str) -> Iterator[_Pattern]:
    local = form.split("@")[0]
    if len(local) < _LEAST_LOCAL or local in _ROLES or is_common_word(local):
        return
    if len(local) >= _TELLING_LOCAL or any(c.isdigit() or c in "._-+" for c in local):
        yield _Pattern(local, USERNAME, "")


def _squeezed_patterns(surface: str, type_: str) -> Iterator[_Pattern]:
    if type_ not in _LOOSE_TYPES:
        return
    forms = {squeeze(fold(surface).text).text}
    if type_ == PHONE:
        forms |= phone_forms(surface)
    for form in sorted(forms):
        if len(form) >= _LEAST_SQUEEZED and any(c.isdigit() for c in form):
            yield _Pattern(form, type_, "")


def _bordered(folded: str, start: int, end: int) -> bool:
    if start and _joined(folded[start - 1], folded[start]) and not after_escape(folded, start):
        return False
    return end == len(folded) or not _joined(folded[end - 1], folded[end])


def _stands(
    text: str, low: int, high: int, folded: str, start: int, end: int, pattern: _Pattern
) -> bool:
    """Tell whether a match is a word, an inflected one or a hump of "getVargaContract"."""
    if _bordered(folded, start, end) or _inflected(folded, start, end, pattern):
        return True
    if pattern.needs or pattern.type not in NAMED_TYPES or end - start < _LEAST_INFLECTED:
        return False
    left = start == 0 or _hump(text, low) or not _joined(folded[start - 1], folded[start])
    right = end == len(folded) or _hump(text, high) or not _joined(folded[end - 1], folded[end])
    return left and right


def _hump(text: str, index: int) -> bool:
    return text[index - 1].islower() and text[index].isupper()


def _inflected(folded: str, start: int, end: int, pattern: _Pattern) -> bool:
    """Tell whether a name stands in the genitive or the plural: "Wieczoreks Anwältin", "the Vargas"."""
    if folded[end : end + 1] != "s" or pattern.type != PERSON or end - start < _LEAST_INFLECTED:
        return False
    return not (
        pattern.needs or pattern.form.endswith("s") or is_common_word(folded[start : end + 1])
    ) and _bordered(folded, start, end + 1)


def _joined(left: str, right: str) -> bool:
    """Tell whether two characters are of one word; scripts without blanks say nothing of that."""
    if not (left.isalnum() and right.isalnum()):
        return False
    return UNSPACED not in (char_class(left), char_class(right))


def _squeezed_bordered(folded: str, start: int, end: int, type_: str) -> bool:
    if end < len(folded) and folded[end].isalnum():
        return False
    if start == 0 or not folded[start - 1].isalnum():
        return True
    # "+12125550142" and "0012125550142": what precedes is a country code.
    return type_ == PHONE and bool(
        re.search(r"(?:\+|(?<!\w)00)\d{1,3}\Z", folded[max(0, start - 6) : start])
    )


def _only_separators(folded: str, index: Sequence[int]) -> bool:
    first, last = index[0], index[-1]
    if last - first + 1 == len(index):
        return True
    return all(
        right - left == 1 or _GAP.match(folded, left + 1, right) is not None
        for left, right in zip(index, index[1:], strict=False)
    )


def _with_opening(text: str, start: int, end: int) -> int:
    """Take in the parenthesis and the plus sign that open a telephone number."""
    if start and text[start - 1] == "(" and ")" in text[start:end]:
        start -= 1
    return start - 1 if start and text[start - 1] == "+" else start


class _Support:
    """Says whether one of some spans overlaps a place; a long text has thousands of both."""

    def __init__(self, spans: Sequence[Span]) -> None:
        ordered = sorted((span.start, span.end) for span in spans)
        self._starts = [start for start, _ in ordered]
        self._furthest = list(accumulate((end for _, end in ordered), max))

    def overlaps(self, start: int, end: int) -> bool:
        place = bisect_left(self._starts, end)
        return place > 0 and self._furthest[place - 1] > start


def _supported(text: str, start: int, end: int, needs: str, supported: _Support) -> bool:
    if supported.overlaps(start, end):
        return True
    if needs != "capital" or not text[start].isupper():
        return False
    # In a line of capitals a capital says nothing.
    if end - start > 1 and text[start:end].isupper():
        return False
    return not sentence_start(text, start)


def _in_mixed_case(text: str, start: int, end: int) -> bool:
    """Tell whether the 80 characters around a word in capitals hold a small letter."""
    around = text[max(0, start - 40) : start] + text[end : end + 40]
    return any(c.islower() for c in around)


def _leftmost_longest(found: Iterable[Span]) -> list[Span]:
    """Choose from the left, the longest first; one that crosses the end of the last widens it."""
    kept: list[Span] = []
    for span in sorted(found, key=lambda s: (s.start, -s.end, s.type)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
        elif span.end > kept[-1].end:
            # Of "sean.o'malley" neither the account "sean.o" nor the name may leave a piece.
            kept[-1] = replace(kept[-1], end=span.end)
    return kept
