"""A second look at lines without mixed case: "pls ask ilse varga", "SIGNED: ILSE VARGA".

Taggers are trained on edited text and read capitals. For a line in one case only, `recased` makes a
variant of equal length in which words that can be names carry a capital; the tagger sees it beside
the original line, and what it finds there counts a little less.
"""

import re
from collections.abc import Iterator
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.recognizers.names import PARTICLES
from privacy.detection.wordlists import family_names, given_names

DISCOUNT: Final = 0.85
_LINE: Final = re.compile(r"[^\n]+")
_WORD: Final = re.compile(r"[^\W\d_]{2,}(?![\w@/]|\.\w|\()")
_MOST: Final = 4_000


def recased(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, variant) for the lines of ``text`` that are in one case and hold possible names."""
    # Any text in mixed case costs two comparisons a line and no more.
    for line in _LINE.finditer(text):
        original = line.group()
        lower = original.islower()
        if not lower and not original.isupper() or len(original) > _MOST:
            continue
        variant = _WORD.sub(_from_lower if lower else _from_upper, original)
        if variant != original and len(variant) == len(original):
            yield line.start(), variant


def _from_lower(match: re.Match[str]) -> str:
    word = match.group()
    if is_common_word(word) or word in PARTICLES:
        return word
    if match.start() and match.string[match.start() - 1] in "_./\\@$":
        return word
    return _capital(word) if word in given_names() or word in family_names() else word


def _from_upper(match: re.Match[str]) -> str:
    word = match.group()
    lower = word.lower()
    if len(lower) != len(word):
        return word
    return lower if is_common_word(lower) else _capital(lower)


def _capital(word: str) -> str:
    capital = word[0].upper()
    return capital + word[1:] if len(capital) == 1 else word
