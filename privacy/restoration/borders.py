"""Word borders: where a substitute stands as a word of its own.

The rule looks at a bounded neighbourhood (``LOOK_BEHIND`` characters to the left, ``LOOK_AHEAD`` to
the right), so a stream can decide it with a small hold-back and always as the whole text would.

* Letters (category L), decimal and letter numbers (Nd, Nl) and combining marks (M) are word
  characters.  Superscript digits (No) are not: ``Varga²`` is a name with a footnote mark.
* Scripts that write no blanks between words, or glue particles to a foreign name (Han, Kana,
  Hangul, Thai, Lao, Khmer, Myanmar), form a class of their own: a Latin name among them has
  borders.
* An underscore run of at most three is markdown emphasis when nothing but the run separates the
  name from a non-word (``_Marta_``), and glue of an identifier when a word character stands beyond
  it (``foo_Marta``).  A longer run is a line to write on, so a border.
* An escape (the backslash and ``n`` of a line break in JSON or code, ``%20`` in a URL) before a
  capital is no part of the word that follows.
* The letter of a possessive or a contraction ("Dean'S O'Hara", "I'd") begins no word.
* Everything else (blank, hyphen, apostrophe, asterisk, emoji, joiner) is a border.
"""

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from typing import Final

# Classes of characters.
OTHER: Final = 0
WORD: Final = 1
UNSPACED: Final = 2
MARK: Final = 3
UNDERSCORE: Final = 4

MAX_UNDERSCORES: Final = 3
_HEX: Final = frozenset("0123456789abcdefABCDEF")
# "l'S&P 500", "l'M-441" and "l'S. Moreau" are no contractions.
_CONTRACTED: Final = re.compile(r"[^\W_]['’][sStTdDmM](?=[\s,;:!?)])")
LOOK_BEHIND: Final = 12
LOOK_AHEAD: Final = MAX_UNDERSCORES + 1

# First and last code points of the unspaced scripts, ascending.
_UNSPACED_RANGES: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x2E80, 0x303F),  # CJK radicals, symbols (々, 〆)
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3100, 0x4DBF),  # Bopomofo, Hangul compatibility, Kanbun, CJK extension A
    (0x4E00, 0x9FFF),  # CJK
    (0xA960, 0xA97F),  # Hangul Jamo extended A
    (0xAC00, 0xD7FF),  # Hangul syllables
    (0xF900, 0xFAFF),  # CJK compatibility
    (0xFF66, 0xFFDC),  # half-width Katakana and Hangul
    (0x1B000, 0x1B16F),  # Kana supplement
    (0x20000, 0x323AF),  # CJK extensions B to H
)
_STARTS: Final = tuple(first for first, _ in _UNSPACED_RANGES)


@lru_cache(maxsize=4096)
def char_class(char: str) -> int:
    """Return the class of one character: OTHER, WORD, UNSPACED, MARK or UNDERSCORE."""
    if char == "_":
        return UNDERSCORE
    category = unicodedata.category(char)
    if category[0] == "M":
        return MARK
    if category[0] != "L" and category not in ("Nd", "Nl"):
        return OTHER
    place = bisect_right(_STARTS, ord(char)) - 1
    if place >= 0 and ord(char) <= _UNSPACED_RANGES[place][1]:
        return UNSPACED
    return WORD


def _class_before(text: str, index: int) -> int:
    """Class that the characters left of ``index`` lend to a border: WORD, UNSPACED or OTHER."""
    floor = max(0, index - LOOK_BEHIND)
    at = index - 1
    underscores = 0
    while at >= floor and text[at] == "_":
        underscores += 1
        at -= 1
    if underscores > MAX_UNDERSCORES:
        return OTHER
    # A mark belongs to its base: 'é' in two code points is a letter, '❤️' with its selector is not.
    while at >= floor and char_class(text[at]) == MARK:
        at -= 1
    if at < floor:
        return OTHER
    found = char_class(text[at])
    return found if found in (WORD, UNSPACED) else OTHER


def left_border(text: str, start: int) -> bool:
    """Say whether a form may start at ``text[start]``, that is, begins a word there."""
    own = char_class(text[start])
    if own == MARK or _CONTRACTED.match(text, max(0, start - 2)) and start > 1:
        return False
    if own not in (WORD, UNSPACED):
        return True
    return _class_before(text, start) != own or (
        text[start].isupper() and after_escape(text, start)
    )


def after_escape(text: str, index: int) -> bool:
    """Say whether an escaped line break or tab or a percent-encoded character ends at ``index``."""
    if index > 1 and text[index - 2] == "\\":
        return text[index - 1] in "nrt"
    return index > 2 and text[index - 3] == "%" and {*text[index - 2 : index]} <= _HEX


def _class_of_last(text: str, end: int) -> int:
    at = end - 1
    while at > 0 and char_class(text[at]) == MARK:
        at -= 1
    return char_class(text[at])


def right_border(text: str, end: int, final: bool) -> bool | None:
    """Say whether a form may end before ``text[end]``; None when more text is needed to know.

    Args:
        text: The text so far.
        end: One past the form's last character.
        final: Whether the text ends here for good.
    """
    limit = len(text)
    if end < limit and char_class(text[end]) == MARK:
        return False
    own = _class_of_last(text, end)
    if own not in (WORD, UNSPACED):
        # Even so a combining mark may still come and change the last character.
        return True if end < limit or final else None
    at = end
    while at < limit and text[at] == "_" and at - end <= MAX_UNDERSCORES:
        at += 1
    if at - end > MAX_UNDERSCORES:
        return True
    if at == limit:
        return True if final else None
    return char_class(text[at]) != own


def stands_alone(text: str, start: int, end: int) -> bool:
    """Say whether ``text[start:end]`` lies on word borders; ``text`` is complete.

    Substitution uses the same rule, so what it replaces on borders is found again on borders.
    """
    return left_border(text, start) and right_border(text, end, True) is True
