"""Surrogates of credentials: the same form, and never a key.

Prefix, length and alphabet stay, so that a reader sees what kind of key it is.  What follows is
drawn anew and, where there is room, ends in a mark (EXAMPLE, as in the keys of published examples;
zeros in hexadecimal), so that no service has given it out and a leak scanner can tell.
"""

import re
from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import UNSAFE, DrawnSurrogate, SurrogateContext, like, pick
from privacy.surrogates.email import EmailSurrogate, decoded_address
from privacy.types import SECRET

# Prefixes that the services document.
_PREFIX: Final = re.compile(
    r"sk-(?:ant-|proj-|or-|svcacct-)?|(?:sk|rk|pk)_(?:live|test)_|gh[pousr]_|github_pat_|glpat-"
    r"|xox[abeoprs]-|AIza|ya29\.|hf_|npm_|pypi-|SG\.|AGE-SECRET-KEY-1|AKIA|ASIA|(?:[a-z]{2,6}[-_]){1,2}(?=\w{16})"
)
_JWT: Final = re.compile(r"eyJ[\w-]+(?:\.[\w-]*){1,2}\Z", re.ASCII)
_FRAME: Final = re.compile(r"(-----[A-Z0-9 ]+-----)")
_HEX: Final = re.compile(r"(?:[0-9a-f]+|[0-9A-F]+)\Z")
_DIGITS: Final = "0123456789"
_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_MARK: Final = "EXAMPLE"
_HEX_MARK: Final = "00000000"
# Shorter values keep all their room for the draw.
_MARKED_FROM: Final = 16
_PASSWORD_SIGNS: Final = "!#$%*+-.=?@_"  # noqa: S105 - an alphabet


class SecretSurrogate(DrawnSurrogate):
    """Keeps prefix, length, alphabet, separators and the frame of a PEM block."""

    type = SECRET

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        if decoded_address(original) is not None:
            return EmailSurrogate().draw(original, rng, context)
        drawn = _in_form(original, rng)
        # Of a prefix or a frame alone nothing would be drawn.
        return drawn if drawn != original else _opaque(original, rng)


def _in_form(original: str, rng: Randomness) -> str:
    if "-----BEGIN" in original:
        parts = _FRAME.split(original)
        return "".join(p if i % 2 else _opaque(p, rng, "") for i, p in enumerate(parts))
    if _JWT.match(original):
        header, *rest = original.split(".")
        return ".".join(["eyJ" + _opaque(header[3:], rng), *(_jwt_part(p, rng) for p in rest)])
    found = _PREFIX.match(original)
    prefix = found.group() if found else ""
    return prefix + _opaque(original[len(prefix) :], rng)


def _jwt_part(part: str, rng: Randomness) -> str:
    return "eyJ" + _opaque(part[3:], rng) if part.startswith("eyJ") else _opaque(part, rng)


def _opaque(text: str, rng: Randomness, mark: str = _MARK) -> str:
    """Redraw letters and digits over the alphabet of ``text``; separators and blanks stay."""
    if _HEX.match(text) and len(text) >= _MARKED_FROM:
        alphabet = _DIGITS + ("ABCDEF" if text.isupper() else "abcdef")
        size = len(text) - len(_HEX_MARK)
        return "".join(pick(rng, alphabet) for _ in range(size)) + _HEX_MARK
    if len(text) < _MARKED_FROM:
        return "".join(_password_char(char, rng) for char in text)
    alphabet = "".join(
        letters
        for letters in (_LOWER, _LOWER.upper(), _DIGITS)
        if any(char in letters for char in text)
    )
    drawn = [pick(rng, alphabet) if _ascii_alnum(c) else like(c, rng) for c in text]
    return "".join(_with_mark(drawn, mark, alphabet))


def _with_mark(drawn: list[str], mark: str, alphabet: str) -> list[str]:
    """Write the mark over the last letters, in a case that the alphabet has."""
    if "A" not in alphabet:
        mark = mark.lower() if "a" in alphabet else ""
    places = [i for i, char in enumerate(drawn) if _ascii_alnum(char)][-len(mark) :] if mark else []
    for place, char in zip(places, mark[-len(places) :] if places else "", strict=True):
        drawn[place] = char
    return drawn


def _ascii_alnum(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _password_char(char: str, rng: Randomness) -> str:
    if char in UNSAFE or (not char.isalnum() and not char.isspace()):
        return pick(rng, _PASSWORD_SIGNS) if char not in "-_./=" else char
    return like(char, rng)
