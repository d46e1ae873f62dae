"""The one scan behind whole texts and streams: leftmost-longest over all forms, on word borders.

The library's own leftmost-longest search would commit to the longest form before the border is
checked and lose a shorter one that stands alone, so all overlapping occurrences are fetched and
chosen from here.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field

from ahocorasick_rs import AhoCorasick

from privacy.restoration.borders import MARK, char_class, left_border, right_border
from privacy.restoration.forms import FormTable, ascii_lower
from privacy.restoration.fuzzy import LEFT_BLOCKS, RIGHT_BLOCKS, TOKEN, FuzzyWords, Protected
from privacy.restoration.gaps import Collapsed, collapse


@dataclass(frozen=True, slots=True)
class Match:
    """``text[start:end]`` becomes ``original``."""

    start: int
    end: int
    original: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan decided: the matches before ``stop``, ascending; from ``stop`` on it is open."""

    matches: tuple[Match, ...]
    stop: int


# Decides whether a match may be used: (text, match, final) -> True, False, or None for "not yet".
Accept = Callable[[str, Match, bool], bool | None]


class Scanner:
    """Scans texts for the forms of a table and for damaged substitutes.

    Args:
        table: The forms.
        fuzzy: The search for damaged substitutes, or None to leave them alone.
    """

    def __init__(self, table: FormTable, fuzzy: FuzzyWords | None) -> None:
        self._table = table
        self._fuzzy = fuzzy if fuzzy else None
        self._protected = Protected(())
        patterns = table.patterns()
        self._automaton = AhoCorasick(patterns) if patterns else None

    def protecting(self, protected: Protected) -> "Scanner":
        """Return this scanner with words that are no damaged substitutes, whatever they look like."""
        scanner = copy(self)
        scanner._protected = protected
        return scanner

    def scan(self, text: str, begin: int, final: bool, accept: Accept | None = None) -> Scan:
        """Decide as much of ``text[begin:]`` as no continuation can change.

        Args:
            text: At most ``LOOK_BEHIND`` characters already decided, then the open text.
            begin: Where the open text begins.
            final: Whether the text ends here for good; then everything is decided.
            accept: A further condition on matches.
        """
        if self._automaton is None or begin >= len(text):
            return Scan((), len(text))
        collapsed = collapse(text)
        best: dict[int, Match] = {}
        waiting: set[int] = set()
        for match, certain in self._occurrences(text, collapsed, begin, final):
            _sort_in(text, match, certain, final, accept, best, waiting)
        if self._fuzzy is not None:
            for match, certain in self._damaged(self._fuzzy, text, begin, final):
                _sort_in(text, match, certain, final, accept, best, waiting)
        if not final:
            waiting.update(self._unfinished(text, collapsed, begin))
        return _choose(best, sorted(waiting), begin, len(text))

    def _occurrences(
        self, text: str, collapsed: Collapsed, begin: int, final: bool
    ) -> Iterator[tuple[Match, bool]]:
        """Yield every form that stands on borders, and whether its right border is certain."""
        assert self._automaton is not None  # noqa: S101 - scan() returned before
        short = collapsed.text
        for _, first, last in self._automaton.find_matches_as_indexes(
            ascii_lower(short), overlapping=True
        ):
            start, end = collapsed.raw(first), collapsed.raw(last)
            if start < begin or not left_border(text, start):
                continue
            border = right_border(text, end, final)
            if border is False:
                continue
            original = self._table.restored(text[start:end], short[first:last])
            if original is not None:
                yield Match(start, end, original), border is True

    def _damaged(
        self, fuzzy: FuzzyWords, text: str, begin: int, final: bool
    ) -> Iterator[tuple[Match, bool]]:
        """Yield damaged substitutes, and words at the end that may still become one."""
        limit = len(text)
        for token in TOKEN.finditer(text, begin):
            start, end, word = token.start(), token.end(), token.group()
            if not word[0].isupper() or not _left_free(text, start):
                continue
            if end == limit and not final:
                if fuzzy.may_become(word):
                    yield Match(start, end, word), False
                continue
            original = fuzzy.restored(word)
            if original is None or word in self._protected:
                continue
            border = _right_free(text, end, final)
            if border is not False:
                yield Match(start, end, original), border is True

    def _unfinished(self, text: str, collapsed: Collapsed, begin: int) -> Iterator[int]:
        """Yield where a form may have begun that the end of the text cuts."""
        short = collapsed.text
        for first in range(max(0, len(short) - self._table.longest), len(short)):
            if self._table.may_continue(short[first:]):
                start = collapsed.raw(first)
                if start >= begin and left_border(text, start):
                    yield start


def _left_free(text: str, start: int) -> bool:
    """Nothing on the left makes the word part of a longer word, an address, a path or code."""
    if start == 0:
        return True
    before = text[start - 1]
    if before in LEFT_BLOCKS or before.isalnum() or char_class(before) == MARK:
        return False
    return left_border(text, start)


def _right_free(text: str, end: int, final: bool) -> bool | None:
    border = right_border(text, end, final)
    if border is not True or end == len(text):
        return border
    after = text[end]
    if after in RIGHT_BLOCKS:
        return False
    if after != ".":
        return True
    if end + 1 == len(text):
        return True if final else None
    return not text[end + 1].isalnum() and text[end + 1] != "_"


def _sort_in(
    text: str,
    match: Match,
    certain: bool,
    final: bool,
    accept: Accept | None,
    best: dict[int, Match],
    waiting: set[int],
) -> None:
    """Keep the longest certain match of each start; note the starts that must wait."""
    verdict: bool | None = certain or None
    if certain and accept is not None:
        verdict = accept(text, match, final)
    if verdict is None:
        waiting.add(match.start)
    elif verdict:
        held = best.get(match.start)
        if held is None or match.end > held.end:
            best[match.start] = match


def _choose(best: dict[int, Match], waiting: list[int], begin: int, limit: int) -> Scan:
    """Choose matches from the left until a start that must wait is reached."""
    chosen: list[Match] = []
    at = begin
    for start in sorted(best):
        if start < at:
            continue
        place = bisect_left(waiting, at)
        if place < len(waiting) and waiting[place] <= start:
            return Scan(tuple(chosen), waiting[place])
        chosen.append(best[start])
        at = best[start].end
    place = bisect_left(waiting, at)
    return Scan(tuple(chosen), waiting[place] if place < len(waiting) else max(at, limit))
