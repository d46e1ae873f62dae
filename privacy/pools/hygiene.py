"""What makes a name fit to be a substitute: plain, recognisable, unambiguous (docs/pools.md).

A substitute has to be found again in an answer and must not be taken for anything else, so each
rule here removes names, never changes them.  Rules return the reason for a rejection, and the
build counts the reasons.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from privacy.embedding.base import fold
from privacy.pools import lists

Rule = Callable[[str], str | None]

_PERSON: Final = re.compile(r"[A-Z][a-z]{2,13}")
_PLACE: Final = re.compile(r"[A-Z][A-Za-z]+(?:[ '-][A-Za-z]+){0,3}")
# Joined prefixes of which a list in capitals no longer tells the right capital form.
_JOINED: Final = re.compile(
    r"Mc.*|(?:O(?=[bcdfghklmnrst])|Mac|Dela|Delos|Vander|Vanden|Fitz|St)(.+)"
)
_OFFENSIVE: Final = frozenset(
    """anal anus arse ass bastard bitch bollock boner boob butt buttock clit cock coon crap cum cunt
    damn dick dildo dyke fag faggot fanny fart fatty felch fuck gook gypsy hell homo hooker horny
    jap jerk jizz kike killer knob kinky kunt labia minge muff nazi negro nigger paki penis piss
    poop porn prick pube puke pussy queer raghead rape rapist retard satan schlong scrotum semen
    sex sexy shit shite slag slave slut slutt smut spastic spic spunk suck suckow tit titty tosser
    tranny turd twat vagina wang wank whore wop kuntz dickman hitler stalin osama""".split()
)


class Screen:
    """Applies rules to candidates in order, keeps what passes and counts why the rest did not."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = tuple(rules)
        self.rejected: Counter[str] = Counter()

    def keep(self, candidates: Iterable[str]) -> list[str]:
        """Return the fitting candidates in order, each folded form once (its first spelling)."""
        seen: set[str] = set()
        kept: list[str] = []
        for name in candidates:
            key = fold(name)
            reason = "duplicate" if key in seen else self._reason(name)
            seen.add(key)
            if reason is None:
                kept.append(name)
            else:
                self.rejected[reason] += 1
        return kept

    def _reason(self, name: str) -> str | None:
        for rule in self._rules:
            reason = rule(name)
            if reason is not None:
                return reason
        return None


def person_form(name: str) -> str | None:
    """One word, 3 to 14 letters A-Z, one capital in front."""
    return None if _PERSON.fullmatch(name) else "form"


def place_form(name: str) -> str | None:
    """One to four words of plain letters, not all in capitals, last one capital, 4 to 30 long."""
    fits = _PLACE.fullmatch(name) and not name.isupper() and 4 <= len(name) <= 30
    return None if fits and name.split()[-1][0].isupper() else "form"


def offensive(name: str) -> str | None:
    """No vulgar or charged word."""
    words = fold(name).replace("-", " ").split()
    return "offensive" if any(word in _OFFENSIVE for word in words) else None


def joined_prefix(name: str) -> str | None:
    """No name whose usual spelling has a second capital (McDonald, O'Brien) lost in the list."""
    match = _JOINED.fullmatch(name)
    if match is None:
        return None
    rest = match.group(1)
    if rest is None or rest.capitalize().casefold() in lists.family_ranks():
        return "capitals"
    return None


def plain_word(name: str) -> str | None:
    """Not an English word, nor one after adding or dropping a final s ("Wood", "Woods")."""
    words = lists.common_words()
    key = fold(name)
    forms = [key, key + "s", key[:-1] if key.endswith("s") else key]
    return "word" if any(form in words for form in forms) else None


def only_words(name: str) -> str | None:
    """Not made of English words alone: in lower case it would be a phrase, not a name."""
    words = lists.common_words()
    return "word" if all(part in words for part in fold(name).replace("-", " ").split()) else None


def also_place(name: str) -> str | None:
    """Not the name of a country, region or city."""
    return "place" if fold(name) in lists.place_names() else None


def also_given(name: str) -> str | None:
    """Not a given name."""
    return "given name" if fold(name) in lists.given_ranks() else None


def also_family(name: str) -> str | None:
    """Not a family name."""
    return "family name" if fold(name) in lists.family_ranks() else None


def mostly_family(name: str) -> str | None:
    """Not a name that is at least a quarter as usual as a family name as it is as a given name."""
    family = lists.family_ranks().get(fold(name))
    own = lists.given_ranks().get(fold(name), 0)
    return "family name" if family is not None and family < 4 * own + 1_000 else None


def person_like(name: str) -> str | None:
    """Not made of personal names alone ("Raphael Michel"): it would read as a person."""
    given, family = lists.given_ranks(), lists.family_ranks()
    parts = fold(name).replace("-", " ").split()
    return "person" if all(part in given or part in family for part in parts) else None


def without_possessive_twins(names: list[str], others: Iterable[str] = ()) -> list[str]:
    """Drop names that are another name plus s ("Roberts" beside "Robert"): read as possessive."""
    present = {fold(name) for name in names} | {fold(name) for name in others}
    return [n for n in names if not (fold(n).endswith("s") and fold(n)[:-1] in present)]


def not_in(taken: Iterable[str], reason: str) -> Rule:
    """Return a rule: the name is not one of ``taken`` (folded)."""
    keys = {fold(name) for name in taken}

    def rule(name: str) -> str | None:
        return reason if fold(name) in keys else None

    return rule
