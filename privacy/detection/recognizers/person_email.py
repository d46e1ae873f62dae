"""A name beside an e-mail address that is made of it: "Chris Mbeki - chrismbeki@roa.test"."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.recognizers.names import WORD, blanks_between
from privacy.types import PERSON, Span

_LOCAL_BACK: Final = re.compile(r"[\w.+'-]{3,64}\Z")
_HOST: Final = re.compile(r"[\w.-]{2,255}")
# "actions/checkout@v4" and "react-dom@18.2.0" are versions.
_VERSION: Final = re.compile(r"[^.]*|v?\d+(?:\.\d+)*")
_PARTS: Final = re.compile(r"[^\W\d_]+")
_REACH: Final = 96


class PersonEmailRecognizer:
    """Words within 96 characters of an address whose local part spells them."""

    name = "person.email"
    types = (PERSON,)

    def find(self, text: str) -> list[Span]:
        spans: list[Span] = []
        at = text.find("@")
        while at >= 0:
            host = _HOST.match(text, at + 1)
            local = _LOCAL_BACK.search(text, max(0, at - 64), at) if host else None
            if (
                host is not None
                and local is not None
                # A chain of at signs is no address.
                and text[host.end() : host.end() + 1] != "@"
                and not _VERSION.fullmatch(host.group())
            ):
                spans.extend(self._beside(text, local.group(), local.start(), host.end()))
            at = text.find("@", host.end() if host else at + 1)
        return spans

    def _beside(self, text: str, local: str, start: int, end: int) -> Iterator[Span]:
        compact = _fold("".join(_PARTS.findall(local)))
        parts = {_fold(part) for part in _PARTS.findall(local)}
        if len(compact) < 3:
            return
        for low, high in (
            (max(0, start - _REACH), start),
            (end, min(len(text), end + _REACH)),
        ):
            words = [m for m in WORD.finditer(text, low, high) if _whole(text, m)]
            for index, word in enumerate(words):
                following = words[index + 1] if index + 1 < len(words) else None
                if following is not None and blanks_between(text, word.end(), following.start()):
                    if _spells(word.group(), following.group(), compact):
                        yield Span(word.start(), following.end(), PERSON, 0.9, self.name)
                        continue
                if _equals(word.group(), parts):
                    yield Span(word.start(), word.end(), PERSON, 0.7, self.name)


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c) and c.isalnum())


def _whole(text: str, match: re.Match[str]) -> bool:
    left = text[match.start() - 1 : match.start()] if match.start() else ""
    right = text[match.end() : match.end() + 1]
    return left not in ("@", ".", "/", "_", "+") and right not in ("@", "/", "_", "+", "=", "(")


def _spells(first: str, second: str, compact: str) -> bool:
    a, b = _fold(first), _fold(second)
    if len(a) < 2 or len(b) < 2 or (is_common_word(first) and is_common_word(second)):
        return False
    return compact in {a + b, b + a, a[0] + b, b + a[0], a + b[0], b[0] + a, b + a[:2]}


def _equals(word: str, parts: set[str]) -> bool:
    folded = _fold(word)
    if folded not in parts or len(folded) < 2:
        return False
    if word[0].isupper():
        return not (is_common_word(word) and len(parts) == 1)
    return len(folded) >= 4 and not is_common_word(word)
