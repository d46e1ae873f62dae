"""Personal names in parts: titles and suffixes stay, given names, family names and initials go.

Drawing part by part (DESIGN 3.4) gives coreference for free: the family name alone, later, is the
same family name.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from privacy.substitution.entry import FAMILY, GIVEN, INITIAL

_TOKEN = re.compile(r"['’][tsd](?=\s)|[^\W_]+(?:['’\-][^\W_]+)*\.?", re.UNICODE)
_INITIAL = re.compile(r"[^\W\d_]\.?$")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)

TITLES = frozenset(
    "mr mrs ms miss mx dr prof professor sir dame lord lady judge justice hon rev father sister "
    "brother captain capt col colonel gen general lt sgt sergeant major maj officer doctor nurse "
    "president senator minister herr frau dipl ing mag monsieur madame mme mlle señor señora sr sra "
    "signor signora dott avv counsel attorney esq".split()
)
SUFFIXES = frozenset(
    "jr sr ii iii iv md phd dds rn llm jd esq cpa mba msc bsc junior senior".split()
)
PARTICLES = frozenset(
    "de del della der den di da do dos das du la le las los van von vom zu zur ter ten te bin ibn "
    "al el st ben bint y e af av 't 's 'd ’t ’s ’d".split()
)


@dataclass(frozen=True, slots=True)
class Part:
    """One replaceable part of a name: ``surface[start:end]``, with its pool."""

    start: int
    end: int
    fine_type: str


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    text: str = field(repr=False)

    @property
    def bare(self) -> str:
        return self.text.rstrip(".").casefold()


def _tokens(surface: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(surface):
        start, end, text = match.start(), match.end(), match.group()
        possessive = _POSSESSIVE.search(text)
        if possessive:
            end -= len(possessive.group())
        text = surface[start:end]
        if text.endswith(".") and not (_INITIAL.match(text) or _is_affix(text)):
            end -= 1
            text = text[:-1]
        found.append(_Token(start, end, text))
    return found


def _is_affix(text: str) -> bool:
    bare = text.rstrip(".").casefold()
    return bare in TITLES or bare in SUFFIXES


def _core(tokens: Sequence[_Token]) -> list[_Token]:
    """Drop the titles before a name and the suffixes behind it; never the whole name."""
    core = list(tokens)
    while len(core) > 1 and core[0].bare in TITLES:
        core.pop(0)
    while len(core) > 1 and core[-1].bare in SUFFIXES and not _lone_initial(core[-1]):
        core.pop()
    return core


def _lone_initial(token: _Token) -> bool:
    return bool(_INITIAL.match(token.text))


def _grouped(tokens: Sequence[_Token]) -> list[_Token]:
    """Join particles to the name they introduce: ``de la Cruz`` is one part."""
    groups: list[_Token] = []
    pending: _Token | None = None
    for index, token in enumerate(tokens):
        particle = token.bare in PARTICLES and index + 1 < len(tokens) and index > 0
        if pending is not None:
            token = _Token(pending.start, token.end, f"{pending.text} {token.text}")
            pending = None
        if particle:
            pending = token
        else:
            groups.append(token)
    return groups


def split_name(surface: str, known_role: Callable[[str], str | None]) -> list[Part]:
    """Split a person's mention into its replaceable parts, in order.

    Args:
        surface: The mention as it stands, white space included.
        known_role: What a single word is known as (``person.given`` or ``person.family``), from the
            session's memory or the public lists; None when unknown.

    Returns:
        The parts; empty when the mention holds no word.
    """
    comma = surface.find(",")
    head, tail = (surface[:comma], surface[comma + 1 :]) if comma > 0 else (surface, "")
    tail_core = [
        _Token(t.start + comma + 1, t.end + comma + 1, t.text)
        for t in _tokens(tail)
        if t.bare not in SUFFIXES
    ]
    head_core = _grouped(_core(_tokens(head)))
    if tail_core and head_core:
        family = [_part(t, FAMILY) for t in head_core]
        return family + [_part(t, GIVEN) for t in _grouped(_core(tail_core))]
    if len(head_core) == 1:
        token = head_core[0]
        return [_part(token, known_role(token.text) or FAMILY)]
    return [
        _part(token, FAMILY if index == len(head_core) - 1 else GIVEN)
        for index, token in enumerate(head_core)
    ]


def _part(token: _Token, fine_type: str) -> Part:
    if _lone_initial(token):
        return Part(token.start, token.start + 1, INITIAL)
    return Part(token.start, token.end, fine_type)
