"""Surrogates of e-mail addresses: a made-up local part at an example domain.

Domains lie below example.com, example.org and example.net, which nobody can own (RFC 2606, section
3; RFC 6761, section 6.5).  An address written with an escaped at sign, spelt out or in base64 gets
a surrogate written the same way.
"""

import base64
import binascii
import re
from typing import Final
from urllib.parse import unquote

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, digits, worded
from privacy.surrogates.ip import documentation_ipv4
from privacy.types import EMAIL

_AT: Final = re.compile(
    r"@|＠|%40|%2540|&#0*64;|&#x0*40;|&commat;|\\u0040|\\x40"
    r"|\s*[\[({<]\s*(?:at|@)\s*[\])}>]\s*|\s+at\s+",
    re.IGNORECASE,
)
_DOT: Final = re.compile(r"\s*[\[({<]\s*(?:dot|\.)\s*[\])}>]\s*|\s+dot\s+|%2e|\.", re.IGNORECASE)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}\Z")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_SHORTEST: Final = 3


class EmailSurrogate(DrawnSurrogate):
    """Keeps separators, case and the way the address is written; not its length."""

    type = EMAIL

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        found = _AT.search(original)
        if found is None:
            decoded = decoded_address(original)
            if decoded is None:
                return worded(original, rng, _SHORTEST)
            return _encoded_like(original, self.draw(decoded, rng, context))
        local, domain = original[: found.start()], original[found.end() :]
        sign = "@" if "\\" in found.group() else found.group()
        return _local(local, rng, context) + sign + _domain(local, domain, rng, context)


def decoded_address(text: str) -> str | None:
    """Return the e-mail address that ``text`` is the base64 form of, or None."""
    if not _BASE64.match(text):
        return None
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return decoded if re.fullmatch(r"[^\s@]+@[^\s@]+", decoded) else None


def _encoded_like(original: str, address: str) -> str:
    encoded = base64.b64encode(address.encode()).decode()
    if "-" in original or "_" in original:
        encoded = encoded.replace("+", "-").replace("/", "_")
    return encoded if original.endswith("=") or len(original) % 4 == 0 else encoded.rstrip("=")


def _local(local: str, rng: Randomness, context: SurrogateContext) -> str:
    # Escaped letters and digits would be kept as escapes, so they are written out first.
    plain = _ESCAPE.sub(
        lambda m: unquote(m.group()) if unquote(m.group()).isalnum() else m.group(), local
    )
    parts = re.split(f"({_DOT.pattern}|{_ESCAPE.pattern})", plain, flags=re.IGNORECASE)
    drawn = "".join(
        part if index % 2 else worded(part, rng, _SHORTEST) for index, part in enumerate(parts)
    )
    # Initials at one domain run out soon; a number at the end gives more room.
    return drawn + digits(rng, 3) if context.widened else drawn


def _domain(local: str, domain: str, rng: Randomness, context: SurrogateContext) -> str:
    if domain.startswith("["):
        return f"[{documentation_ipv4(rng, context)}]"
    dots = [found.group() for found in _DOT.finditer(domain)]
    plain = _DOT.sub(".", domain)
    drawn = context.domain_for(plain, rng)
    if domain.isupper():
        drawn = drawn.upper()
    style = next((dot for dot in (*dots, *_DOT.findall(local)) if dot != "."), ".")
    return drawn.replace(".", style if "\\" not in style else ".")
