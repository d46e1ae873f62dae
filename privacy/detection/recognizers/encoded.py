"""Identifiers behind an encoding: percent, HTML and JSON escapes of the at sign, and base64.

The decoded view is scanned, the encoded region is reported, nothing beside it. A base64 region is
reported as SECRET, because what replaces it must be an opaque token of the same alphabet; an address
with an escaped at sign stays EMAIL.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Final

from privacy.detection.base import Recognizer
from privacy.types import EMAIL, SECRET, Span

_ESCAPED_AT: Final = re.compile(r"%40|%2540|&#0*64;|&#x0*40;|&commat;|\\u0040|\\x40", re.I)
_LOCAL_BACK: Final = re.compile(r"(?:[\w.+-]|%2[bBdDeE]){1,80}\Z")
_HOST: Final = re.compile(r"[^\W_][\w-]{0,62}(?:(?:\.|%2[eE])[^\W_][\w-]{0,62}){1,8}")
_LEADING_ESCAPE: Final = re.compile(r"\A(?:%[0-9A-Fa-f]{2}|u00[0-9a-f]{2}|[.+-])+")

_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{12,}={0,2}(?![A-Za-z0-9+/=])")
_WRAPPED_LIMIT: Final = 262_144


class EscapedEmailRecognizer:
    """``ilse.varga%40example.com`` and the like."""

    name = "encoded.email"
    types = (EMAIL,)
    whole_text = True

    def find(self, text: str) -> list[Span]:
        spans = []
        for at in _ESCAPED_AT.finditer(text):
            local = _LOCAL_BACK.search(text, max(0, at.start() - 80), at.start())
            host = _HOST.match(text, at.end())
            if local is None or host is None:
                continue
            lead = _LEADING_ESCAPE.match(local.group())
            start = local.start() + (lead.end() if lead else 0)
            if start < at.start():
                spans.append(Span(start, host.end(), EMAIL, 0.97, self.name))
        return spans


class Base64Recognizer:
    """Base64 tokens (standard and URL alphabet) that decode to text with an identifier in it.

    Args:
        inner: Recognizers that look at the decoded view; high precision ones only.
    """

    name = "encoded.base64"
    types = (SECRET,)
    whole_text = True

    def __init__(self, inner: Sequence[Recognizer]) -> None:
        self._inner = tuple(inner)

    def find(self, text: str) -> list[Span]:
        spans = []
        for match in _BASE64.finditer(text):
            decoded = _decode(match.group())
            if decoded is not None and self._holds_identifier(decoded):
                spans.append(Span(match.start(), match.end(), SECRET, 0.95, self.name))
        return spans

    def _holds_identifier(self, decoded: str) -> bool:
        return any(span.score >= 0.9 for inner in self._inner for span in inner.find(decoded))


def _decode(token: str) -> str | None:
    """Return the text that ``token`` encodes, or None when it is not base64 of readable text."""
    body = token.rstrip("=")
    if len(body) % 4 == 1 or body.isdigit() or (body.isalpha() and body.islower()):
        return None
    body = body[:_WRAPPED_LIMIT]
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        raw = base64.b64decode(
            body.replace("-", "+").replace("_", "/") + "=" * (-len(body) % 4), validate=True
        )
        text = raw.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    readable = sum(character.isprintable() or character in "\n\r\t" for character in text)
    return text if readable == len(text) else None
