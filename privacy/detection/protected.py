"""What detection must not touch, and what cannot be a name.

Two kinds of ranges are protected: the payload of base64 data URLs (bytes, never text) and opaque
digests (UUIDs, hashes), in which only a SECRET may be found. `is_plausible` keeps named entities out
of code: identifiers, calls, paths and file names.
"""

import re
from bisect import bisect_right
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.escapes import DECODED
from privacy.detection.recognizers.names import FUNCTION_WORDS
from privacy.detection.sentences import sentence_start
from privacy.types import NAMED_TYPES, SECRET, Span

# A text in a data URL is a text, however it is encoded.
_HEAD: Final = (
    r"data:(?!text/|image/svg|application/(?:json|xml|yaml|javascript|[\w.+-]*\+(?:json|xml)))"
    r"[\w.+-]{1,64}/[\w.+-]{1,128}(?:;[\w.+-]{1,64}(?:=[\w.+\"-]{0,64})?){0,4};base64,"
)
_BYTES_URL: Final = re.compile(_HEAD + r"[A-Za-z0-9+/_=-]*", re.I)
_DATA_URL: Final = re.compile(
    _HEAD + r"[A-Za-z0-9+/_=%-]*"
    # Abbreviated in logs and documentation: "iVBOR...QmCC".
    r"(?:(?:\.{3}|…)[A-Za-z0-9+/_=%-]*)*",
    re.I,
)
_OPAQUE: Final = re.compile(
    r"(?<![\w-])(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?=[0-9]*[a-fA-F])[0-9a-fA-F]{32,128})(?![\w-])"
)
_HEX: Final = re.compile(r"[0-9a-fA-F]{8}")
_TOKEN_CODE: Final = re.compile(r"[(){}\[\]<>=;|\\`]|::|->|\w\.[A-Za-z]\w{0,4}\Z|_\w")
_PATHS: Final = re.compile(r"/.*/|\\.*\\|\w/\S*\.\w{1,5}\Z|^\.{0,2}/")
# What the place of a name says is not taken back for what stands around it.
_PLACED: Final = frozenset(("address", "person.field", "person.column", "person.file"))
_TITLE_DOT: Final = re.compile(r"(?:Dr|Mr|Mrs|Ms|Prof|St|Sr|Sra|Hr|Fr|Mt|[A-Z])\.\Z")


def is_bytes_url(text: str) -> bool:
    """Tell whether the whole of ``text`` is a data URL of something that is no text."""
    return text[:5].lower() == "data:" and _BYTES_URL.fullmatch(text) is not None


def bytes_ranges(text: str) -> list[tuple[int, int]]:
    """Return where data URLs of something that is no text stand, in order."""
    if "base64," not in text.lower():
        return []
    return [match.span() for match in _DATA_URL.finditer(text)]


class Protected:
    """The protected ranges of one text."""

    def __init__(self, text: str) -> None:
        self._closed = bytes_ranges(text)
        # The cheap look first: most texts hold no eight hexadecimal digits in a row.
        self._opaque = [m.span() for m in _OPAQUE.finditer(text)] if _HEX.search(text) else []

    def allows(self, span: Span) -> bool:
        """Tell whether ``span`` may be reported."""
        payload = _over(self._closed, span)
        if payload is not None:
            # An address that goes on behind the payload is text; what it eats of the bytes are letters
            # that a text put there.
            return span.end > payload[1] and span.type not in NAMED_TYPES
        return span.type == SECRET or _over(self._opaque, span) is None


def _over(ranges: list[tuple[int, int]], span: Span) -> tuple[int, int] | None:
    """Return the last range that a span overlaps."""
    index = bisect_right(ranges, (span.end - 1, 1 << 62)) - 1
    return ranges[index] if index >= 0 and ranges[index][1] > span.start else None


def _enclosing_token(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the white-space delimited stretch around a range, at most 64 characters either way."""
    low = max(0, start - 64)
    left = max((text.rfind(blank, low, start) for blank in " \n\t"), default=-1)
    left = left + 1 if left >= low else low
    right = end
    stop = min(len(text), end + 64)
    while right < stop and not text[right].isspace():
        right += 1
    return left, right


def is_plausible(text: str, span: Span) -> bool:
    """Tell whether a named span can be the name of somebody or something and not a piece of code."""
    if span.type not in NAMED_TYPES:
        return True
    if span.recognizer.endswith(DECODED):
        return True
    surface = text[span.start : span.end]
    if sum(c.isalpha() for c in surface) < 2:
        return False
    if span.recognizer in _PLACED:
        return True
    if any(c in surface for c in "{}[]<>=|\\`@") or surface.count("(") != surface.count(")"):
        return False
    words = surface.split()
    if len(words) == 1:
        return _single_word(text, span, surface)
    return any(word[0].isalpha() and word.casefold() not in FUNCTION_WORDS for word in words)


def _single_word(text: str, span: Span, surface: str) -> bool:
    fold = surface.casefold()
    if is_common_word(fold) and (
        surface.islower()
        or (fold in FUNCTION_WORDS and not surface.isupper() and sentence_start(text, span.start))
        or (span.score < 0.9 and sentence_start(text, span.start))
    ):
        return False
    return not _in_code(text, span, surface)


def _in_code(text: str, span: Span, surface: str) -> bool:
    left, right = _enclosing_token(text, span.start, span.end)
    before, after = text[left : span.start], text[span.end : right]
    if before and before[-1] in "/\\_$#@" or after[:1] in ("_", "\\", "@"):
        # "Varga/Brandt" is two names; "src/Varga/file.py" is a path.
        joined = text[left:right]
        return bool(
            before[-1:] in ("_", "$", "#", "@", "\\")
            or after[:1] in ("_", "\\", "@")
            or _PATHS.search(joined)
        )
    if after[:1] == "/" and _PATHS.search(text[left:right]):
        return True
    if before[-1:] == "." and before[-2:-1].isalnum() and not _TITLE_DOT.search(before):
        return True
    if after[:1] == "(" and not after[1:2].isdigit():
        return True
    if re.match(r"\.[A-Za-z_]|::|->|\[|=[^\"'=]", after):
        return True
    return bool(_TOKEN_CODE.search(surface))
