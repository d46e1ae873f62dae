"""Words and their case shape: the tagger's view of a text, the same in training and at run time."""

import re
import unicodedata
from typing import Final

# The encoder reads lower-cased word pieces, so capitals reach it only through these shape ids.
SHAPE_LOWER: Final = 0
SHAPE_TITLE: Final = 1
SHAPE_UPPER: Final = 2
SHAPE_MIXED: Final = 3
SHAPE_OTHER: Final = 4
SHAPE_HANDLE: Final = 5
SHAPE_LINE: Final = 6
SHAPES: Final = 7


def _marks() -> str:
    """Every combining mark of the basic plane, as the inside of a character class.

    ``\\w`` leaves marks out, which would cut a decomposed "José" in two.
    """
    ranges: list[list[int]] = []
    for code in range(0x300, 0xFFFF):
        if unicodedata.category(chr(code)) in ("Mn", "Mc"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\u{low:04x}-\\u{high:04x}" for low, high in ranges)


_MARKS = _marks()
# Ideographs and kana stand without blanks between words, so each is a word of its own.
_SOLO = "\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff"
# Invisible: joiners, soft hyphen, byte order mark, direction marks. Part of a word that they stand
# in, otherwise nothing.
_HIDDEN = "\\u00ad\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2064\\ufeff"
_PICTURE = "\\u2190-\\u2bff\\ufe0e\\ufe0f\\u20e3\\U0001f000-\\U0001faff\\U000e0020-\\U000e007f"
_LETTER = f"(?![{_SOLO}])[^\\W_]"
_WORD = re.compile(
    f"{_LETTER}(?:{_LETTER}|[{_MARKS}{_HIDDEN}])*"
    f"|(?<![^\\W])@[\\w]+"
    f"|[{_SOLO}]"
    f"|[{_PICTURE}](?:[{_PICTURE}{_HIDDEN}])*"
    f"|[\\n\\r\\u2028\\u2029]\\s*"
    f"|[^\\w\\s{_HIDDEN}]|_"
)
_LINE_BREAKS = "\n\r\u2028\u2029"


def split_words(text: str) -> list[tuple[int, int]]:
    """Half-open code point ranges of the words of ``text``, in order.

    A word is a run of letters, digits and combining marks; a handle with its sign (``@name``); a
    run of pictographs; a line break with the white space after it, which the tagger reads as a
    separator; or any other single visible character. Blanks belong to no word.
    """
    return [match.span() for match in _WORD.finditer(text)]


def is_line_break(word: str) -> bool:
    """Whether a word of ``split_words`` is a line break."""
    return word[0] in _LINE_BREAKS


def is_paragraph_break(word: str) -> bool:
    """Whether a line break leaves a line empty. No name runs over one."""
    return is_line_break(word) and word.replace("\r\n", "\n").count("\n") > 1


def shape(word: str) -> int:
    """Case shape of a word, one of the ``SHAPE_*`` constants.

    A single capital ("I", the initial in "Ilse M. Varga") counts as a title-case word: it says
    nothing about the case of the words around it.
    """
    if is_line_break(word):
        return SHAPE_LINE
    if len(word) > 1 and word[0] == "@":
        return SHAPE_HANDLE
    if not any(c.isalpha() for c in word):
        return SHAPE_OTHER
    if word == word.lower():
        return SHAPE_LOWER
    if not word[0].isupper():
        return SHAPE_MIXED
    rest = [c for c in word[1:] if c.isalpha()]
    if not rest or all(c == c.lower() for c in rest):
        return SHAPE_TITLE
    return SHAPE_UPPER if word == word.upper() else SHAPE_MIXED
