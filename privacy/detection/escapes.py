r"""Letters that a text spells as escapes: ``Kr\u00fcger``, ``Kr&uuml;ger``, ``Kr%C3%BCger``, ``Kr=C3=BCger``.

Whoever reads the text reads the name, so names are looked for in the decoded view as well. Escapes of
anything but a letter stay as they are.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from typing import Final
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

_ESCAPE: Final = re.compile(
    r"\\u[0-9a-fA-F]{4}|\\x[c-fC-F][0-9a-fA-F]|&(?:#[0-9]{2,7}|#[xX][0-9a-fA-F]{2,6}|[A-Za-z]{2,24});"
    # UTF-8 sequences of two bytes and more, in URLs and in quoted-printable mail.
    r"|(?:%[c-fC-F][0-9a-fA-F](?:%[89abAB][0-9a-fA-F]){1,3})|(?:=[C-F][0-9A-F](?:=[89AB][0-9A-F]){1,3})"
)
#: Ends the recognizer's name of a span that was found in the decoded view.
DECODED: Final = ".decoded"
_MARKS: Final = ("\\u", "\\x", "&", "%", "=")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text with its escaped letters decoded.

    Attributes:
        text: The decoded text.
        starts: For each of its characters, where the original has it.
        ends: The same, one past its end.
    """

    text: str = field(repr=False)
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Map a non-empty range of the decoded text to the original."""
        return int(self.starts[start]), int(self.ends[end - 1])


def decoded(text: str) -> Decoded | None:
    """Return the decoded view of ``text``, None when no letter is escaped."""
    if not any(mark in text for mark in _MARKS):
        return None
    pieces: list[str] = []
    starts: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = []
    position = 0
    for match in _ESCAPE.finditer(text):
        letter = _letter(match.group())
        if not letter:
            continue
        between = np.arange(position, match.start(), dtype=np.int64)
        starts += [between, np.full(1, match.start(), np.int64)]
        ends += [between + 1, np.full(1, match.end(), np.int64)]
        pieces += [text[position : match.start()], letter]
        position = match.end()
    if not pieces:
        return None
    rest = np.arange(position, len(text), dtype=np.int64)
    return Decoded(
        "".join((*pieces, text[position:])),
        np.concatenate((*starts, rest)),
        np.concatenate((*ends, rest + 1)),
    )


def has_escapes(surface: str) -> bool:
    """Tell whether a letter of ``surface`` is escaped."""
    return any(_letter(match.group()) for match in _ESCAPE.finditer(surface))


@lru_cache(maxsize=1024)
def _letter(escape: str) -> str:
    """Return the one letter that an escape stands for, or nothing."""
    if escape[0] == "\\":
        found = chr(int(escape[2:], 16))
    elif escape[0] == "&":
        found = unescape(escape)
    else:
        found = unquote(escape.replace("=", "%"), errors="replace")
    return found if len(found) == 1 and found.isalpha() else ""
