"""Persons, organisations and places: pieces from pool draws (DESIGN 3.4)."""

import re
from collections.abc import Sequence

from privacy.detection.escapes import has_escapes
from privacy.mechanisms.base import PoolExhausted
from privacy.substitution.draws import Drawer
from privacy.substitution.entry import (
    ADDRESS,
    EXACT_PREFIX,
    FAMILY,
    GIVEN,
    INITIAL,
    MENTION,
    Entry,
)
from privacy.substitution.memory import Memory
from privacy.substitution.names import Part, split_name
from privacy.substitution.places import address_parts, is_address, organisation_core
from privacy.substitution.rewrite import Piece, rewrite
from privacy.substitution.rules import Rule
from privacy.substitution.shapes import canonical_form, entity_key, same_shape
from privacy.types import LOC, ORG, PERSON

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MAX_NUMBER_TRIES = 50


class NamedSubstituter:
    """Resolves one surface into pieces whose offsets are relative to it."""

    def __init__(self, drawer: Drawer, memory: Memory) -> None:
        self._drawer = drawer
        self._memory = memory

    def person(self, surface: str, rule: Rule) -> list[Piece]:
        """Resolve a person's mention part by part."""
        whole = self._memory.named(surface)
        if whole is not None:
            shaped = _shaped(surface, whole)
            if shaped is not None:
                return [Piece(0, len(surface), shaped)]
        if has_escapes(surface):
            return [Piece(0, len(surface), self._whole(FAMILY, surface, PERSON, rule))]
        parts = _restorable(surface, split_name(surface, self._role))
        known = self._known_mention(surface, parts)
        if known is not None:
            return [known]
        try:
            pieces = [self._part(surface, part, parts, rule) for part in parts]
        except PoolExhausted:
            key = EXACT_PREFIX + surface
            entry = self._drawer.placeholder(FAMILY, key, surface, PERSON)
            return [Piece(0, len(surface), entry.substitute)]
        if len(parts) > 1:
            self._remember_mention(surface, pieces, parts)
        return pieces

    def _known_mention(self, surface: str, parts: Sequence[Part]) -> Piece | None:
        """Return what a mention of several parts became before.

        What an initial stands for depends on the persons known by then; a resent text must come out
        as it did.
        """
        if len(parts) < 2:
            return None
        start, end = parts[0].start, parts[-1].end
        known = self._memory.get(MENTION, EXACT_PREFIX + surface[start:end])
        return None if known is None else Piece(start, end, known.substitute)

    def organisation(self, surface: str, rule: Rule) -> list[Piece]:
        """Resolve an organisation: the whole name without article and legal form."""
        start, end = organisation_core(surface)
        name = surface[start:end]
        return [Piece(start, end, self._whole("org", name, ORG, rule))]

    def place(self, surface: str, rule: Rule) -> list[Piece]:
        """Resolve a place, or the parts of an address."""
        if has_escapes(surface) or not is_address(surface):
            fine_type = self._drawer.pools.classify_loc(surface)
            return [Piece(0, len(surface), self._whole(fine_type, surface, LOC, rule))]
        known = self._memory.get(ADDRESS, entity_key(surface))
        if known is not None and known.original == surface:
            return [Piece(0, len(surface), known.substitute)]
        substitute = self._address(surface, rule)
        key = entity_key(surface) if known is None else EXACT_PREFIX + surface
        self._memory.add(Entry(ADDRESS, key, surface, substitute, None, {}, LOC))
        return [Piece(0, len(surface), substitute)]

    def _role(self, word: str) -> str | None:
        for fine_type in (FAMILY, GIVEN):
            if self._memory.get(fine_type, entity_key(word)):
                return fine_type
        in_given = self._drawer.pools.contains(GIVEN, word)
        in_family = self._drawer.pools.contains(FAMILY, word)
        return GIVEN if in_given and not in_family else None

    def _whole(self, fine_type: str, surface: str, entity_type: str, rule: Rule) -> str:
        """Return the substitute of one whole name in the shape of ``surface``."""
        known = self._memory.named(surface)
        if known is not None:
            shaped = _shaped(surface, known)
            if shaped is not None:
                return shaped
        original = canonical_form(surface, acronyms=fine_type == "org")
        if known is None:
            entry = self._drawer.from_pool(
                fine_type, entity_key(surface), original, entity_type, rule
            )
            shaped = same_shape(surface, original, entry.substitute)
            if shaped is not None:
                return shaped
        entry = self._drawer.from_pool(
            fine_type, EXACT_PREFIX + surface, surface, entity_type, rule
        )
        return entry.substitute

    def _part(self, surface: str, part: Part, parts: list[Part], rule: Rule) -> Piece:
        text = surface[part.start : part.end]
        if part.fine_type == INITIAL:
            letter = self._initial(text, surface, parts)
            return Piece(part.start, part.end, letter.lower() if text.islower() else letter)
        return Piece(part.start, part.end, self._whole(part.fine_type, text, PERSON, rule))

    def _initial(self, letter: str, surface: str, parts: list[Part]) -> str:
        """Return the letter that stands for an initial.

        Where the session knows one person of that family name whose given name begins so, it is
        the substitute's own initial; else a uniform draw, one letter for one letter.
        """
        family = next((p for p in parts if p.fine_type == FAMILY), None)
        if family is not None:
            key = entity_key(surface[family.start : family.end])
            fits = {
                m.substitute[0]
                for m in self._memory.mentions()
                if m.detail.get("family") == key and m.original[:1].upper() == letter.upper()
            }
            if len(fits) == 1:
                return fits.pop().upper()
        key = letter.casefold()
        known = self._memory.get(INITIAL, key)
        if known is None:
            used = {e.substitute for k in _ALPHABET if (e := self._memory.get(INITIAL, k.lower()))}
            free = [c for c in _ALPHABET if c not in used and c != letter.upper()]
            if not free:
                raise PoolExhausted(INITIAL)
            drawn = free[self._drawer.rng.below(len(free))]
            known = self._drawer.surrogate(INITIAL, key, letter.upper(), PERSON, drawn, "uniform")
        return known.substitute

    def _remember_mention(self, surface: str, pieces: list[Piece], parts: list[Part]) -> None:
        """Keep the whole mention: its initials, and the forms derived from it, are restored by it."""
        start, end = parts[0].start, parts[-1].end
        original = " ".join(surface[start:end].split())
        relative = [Piece(p.start - start, p.end - start, p.replacement) for p in pieces]
        substitute = " ".join(rewrite(surface[start:end], relative).split())
        key = EXACT_PREFIX + original
        if self._memory.get(MENTION, key) is not None:
            return
        detail = {
            part.fine_type.partition(".")[2]: entity_key(surface[part.start : part.end])
            for part in parts
        }
        detail["order"] = "inverted" if parts[0].fine_type == FAMILY else "natural"
        self._memory.add(Entry(MENTION, key, original, substitute, None, detail, PERSON))

    def _address(self, surface: str, rule: Rule) -> str:
        for _ in range(_MAX_NUMBER_TRIES):
            pieces = []
            for start, end, is_number in address_parts(surface):
                text = surface[start:end]
                if is_number:
                    pieces.append(Piece(start, end, self._digits(text)))
                else:
                    fine_type = self._drawer.pools.classify_loc(text)
                    if any(c.isdigit() for c in surface.split(",")[0]) and start < len(
                        surface.split(",")[0]
                    ):
                        fine_type = "loc.street"
                    pieces.append(Piece(start, end, self._whole(fine_type, text, LOC, rule)))
            substitute = rewrite(surface, pieces)
            if substitute != surface and not self._memory.literal(substitute):
                return substitute
        raise PoolExhausted(ADDRESS)

    def _digits(self, number: str) -> str:
        first = str(1 + self._drawer.rng.below(9))
        return first + "".join(str(self._drawer.rng.below(10)) for _ in number[1:])


def _shaped(surface: str, known: Entry) -> str | None:
    """Return the substitute in the shape of ``surface``; one kept as it is spelt has that shape alone."""
    if known.key == EXACT_PREFIX + surface:
        return known.substitute
    return same_shape(surface, known.original, known.substitute)


def _restorable(surface: str, parts: list[Part]) -> list[Part]:
    """Join the parts of a mention that could not be told again one by one.

    An initial is restored by the name that it stands in, so initials alone are one name. White space
    inside a part ("de la  Cruz") has no counterpart in the one word that replaces the part.
    """
    if not parts:
        return parts
    ragged = any("  " in gap or gap.strip(" ") for part in parts for gap in _gaps(surface, part))
    initials = all(part.fine_type == INITIAL for part in parts)
    if initials or (ragged and len(parts) > 1):
        return [Part(parts[0].start, parts[-1].end, FAMILY)]
    return parts


def _gaps(surface: str, part: Part) -> list[str]:
    return re.findall(r"\s+", surface[part.start : part.end])
