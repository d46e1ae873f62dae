"""What every surrogate shares: the protocol, the session's context, and drawing by pattern.

A surrogate is drawn at random, independent of the value it replaces except for its format, so it
costs no epsilon beyond the format (DESIGN 3.4).
"""

import unicodedata
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from privacy.detection.common_words import is_common_word
from privacy.randomness import Randomness

T = TypeVar("T")

# From this attempt on a surrogate may leave a small reserved range for a larger one.
WIDEN_AFTER: Final = 40
_DRAWS: Final = 200
UNSAFE: Final = frozenset("\"'`\\")
_SAFE: Final = str.maketrans(dict.fromkeys(UNSAFE, "-"))

_VOWELS: Final = "aeiou"
_CONSONANTS: Final = "bdfgklmnprstv"
# One of these in every made-up word keeps it away from names and words.
_RARE: Final = "jqwxz"
_TLDS: Final = ("com", "org", "net")
_SECOND_LEVEL: Final = frozenset({"ac", "co", "com", "edu", "gov", "net", "org"})


class SurrogateExhausted(RuntimeError):
    """No free surrogate was found; the policy's rule for exhausted pools applies."""


class SurrogateUnsupported(ValueError):
    """The value has no form that a surrogate could keep (an unreadable date); use a placeholder."""


@dataclass(frozen=True, slots=True)
class SurrogateContext:
    """What a session knows when it draws a surrogate.

    Attributes:
        domains: Original domain in lower case to its surrogate.  Drawing adds to it; the caller
            keeps it with the session, so that one domain has one surrogate.
        day_shift: By how many days the session's dates are moved; not 0 when dates are drawn.
        region: Country (ISO 3166) of telephone numbers without a country code.
        day_first: Whether 02/03/1984 is the second of March.
        attempt: How often the caller has refused a draw for this value.
    """

    domains: MutableMapping[str, str] = field(repr=False, default_factory=dict)
    day_shift: int = 0
    region: str = "US"
    day_first: bool = False
    attempt: int = 0

    @property
    def widened(self) -> bool:
        """Whether so many draws were refused that a larger range is called for."""
        return self.attempt >= WIDEN_AFTER

    def domain_for(self, domain: str, rng: Randomness) -> str:
        """Return the session's surrogate of a domain, below a reserved one (RFC 2606, RFC 6761)."""
        key = domain.casefold().rstrip(".")
        if key not in self.domains:
            for _ in range(_DRAWS):
                drawn = self._new_domain(key, rng)
                if drawn != key and drawn not in self.domains.values():
                    self.domains[key] = drawn
                    break
            else:
                raise SurrogateExhausted("no free example domain: end the session and start anew")
        return self.domains[key]

    def _new_domain(self, key: str, rng: Randomness) -> str:
        """Draw a host below its domain's surrogate, or a new example domain."""
        labels = key.split(".")
        # "acme.co.uk" is one domain, as "acme.com" is.
        size = 3 if len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2 else 2
        if len(labels) > size:
            host = ".".join(x if x == "www" else worded(x, rng, 3) for x in labels[:-size])
            return f"{host}.{self.domain_for('.'.join(labels[-size:]), rng)}"
        tld = labels[-1] if labels[-1] in _TLDS else pick(rng, _TLDS)
        return f"{made_up(rng, 6)}.example.{tld}"


class Surrogate(Protocol):
    """Makes surrogates of one type."""

    type: str

    def make(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        """Return a surrogate: not the original, no quote or backslash, no new white space.

        Raises:
            SurrogateExhausted: When nothing but the original comes out.
            SurrogateUnsupported: When the value's form is not understood.
        """


class DrawnSurrogate:
    """Base of the surrogates: draws until the result is fit to stand for the original."""

    type: str

    def make(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        """See `Surrogate.make`."""
        for _ in range(_DRAWS):
            drawn = self.draw(original, rng, context).translate(_SAFE)
            if _fit(drawn, original):
                return drawn
        raise SurrogateExhausted(f"no surrogate of type {self.type} differs from the original")

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        """Return one draw; it may still equal the original."""
        raise NotImplementedError


def _fit(drawn: str, original: str) -> bool:
    if not drawn or drawn.casefold() == original.casefold() or drawn != drawn.strip():
        return False
    blanks = {c for c in original if c.isspace()}
    return not any(c in UNSAFE or (c.isspace() and c not in blanks) for c in drawn)


def pick(rng: Randomness, choices: Sequence[T]) -> T:
    """Return one of ``choices``, each equally likely."""
    return choices[rng.below(len(choices))]


def digits(rng: Randomness, count: int) -> str:
    """Return ``count`` random digits."""
    return "".join(str(rng.below(10)) for _ in range(count))


def made_up(rng: Randomness, length: int) -> str:
    """Return a pronounceable lower-case ASCII word that is none, ``length`` letters long."""
    while True:
        letters = [pick(rng, _VOWELS if i % 2 else _CONSONANTS) for i in range(length)]
        letters[2 * rng.below((length + 1) // 2)] = pick(rng, _RARE)
        word = "".join(letters)
        if not is_common_word(word):
            return word


def like(char: str, rng: Randomness) -> str:
    """Return a random character of the class of ``char``; what is no letter or digit stays."""
    value = unicodedata.decimal(char, None)
    if value is not None:
        return chr(ord(char) - value + rng.below(10))
    if not char.isalpha():
        return char if unicodedata.category(char)[0] != "M" else ""
    return pick(rng, "ABCDEFGHJKLMNPQRSTUVWXYZ" if char.isupper() else "abcdefghjkmnpqrstuvwxyz")


def redrawn(text: str, rng: Randomness) -> str:
    """Redraw every letter and digit of ``text``; a leading digit other than 0 stays one."""
    out: list[str] = []
    after_digit = False
    for char in text:
        new = like(char, rng)
        is_digit = char.isdecimal()
        if is_digit and not after_digit and unicodedata.decimal(char) != 0:
            new = chr(ord(char) - unicodedata.decimal(char) + 1 + rng.below(9))
        out.append(new)
        after_digit = is_digit
    return "".join(out)


def worded(text: str, rng: Randomness, least: int = 1) -> str:
    """Replace runs of letters by made-up words in the same case and redraw the digits.

    Args:
        text: A user name, a slug, the local part of an address.
        rng: The randomness.
        least: Shortest made-up word.
    """
    out: list[str] = []
    at = 0
    while at < len(text):
        end = at
        while end < len(text) and (
            text[end].isalpha() or unicodedata.category(text[end])[0] == "M"
        ):
            end += 1
        if end == at:
            out.append(like(text[at], rng))
            at += 1
            continue
        run = text[at:end]
        word = made_up(rng, max(len(run), least))
        if run.isupper() and (len(run) > 1 or text.isupper()):
            word = word.upper()
        elif run[0].isupper():
            word = word.capitalize()
        out.append(word)
        at = end
    return "".join(out)


def refill(layout: str, new: str) -> str:
    """Write the characters of ``new`` into the letter and digit places of ``layout``, in order.

    Separators stay.  Surplus characters follow the last place; places without one fall away, and
    so do the separators behind them.
    """
    rest = list(new)
    places = [i for i, char in enumerate(layout) if char.isalnum()]
    out: list[str] = []
    for i, char in enumerate(layout):
        if not char.isalnum():
            out.append(char)
            continue
        if not rest:
            return "".join(out).rstrip(" -./\u00a0(")
        out.append(_digit_like(char, rest.pop(0)))
        if i == places[-1]:
            out += rest
    return "".join(out)


def _digit_like(char: str, digit: str) -> str:
    """Write an ASCII digit in the script of the digit it replaces."""
    value = unicodedata.decimal(char, None)
    if value is None or char.isascii() or not digit.isdecimal():
        return digit
    return chr(ord(char) - value + int(digit))
