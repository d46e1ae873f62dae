"""Structured identifiers: surrogates, placeholders, hashes and markers."""

from privacy.substitution.draws import Drawer
from privacy.substitution.entry import EXACT_PREFIX, Entry
from privacy.substitution.memory import Memory, digits
from privacy.substitution.rewrite import Piece
from privacy.substitution.rules import Rule
from privacy.substitution.shapes import entity_key
from privacy.surrogates import (
    SurrogateContext,
    SurrogateExhausted,
    SurrogateUnsupported,
    shift_date,
    surrogate_for,
)
from privacy.types import DATE, PHONE

_TRIES = 200
_HASH_LENGTH = 12
_VISIBLE_TAIL = 4
_NUMBERS = frozenset((PHONE, "CREDIT_CARD", "IBAN", "BANK_ACCOUNT", "RECORD_ID"))


class StructuredSubstituter:
    """Resolves identifiers, which are replaced as a whole."""

    def __init__(self, drawer: Drawer, memory: Memory) -> None:
        self._drawer = drawer
        self._memory = memory

    def pieces(self, surface: str, entity_type: str, rule: Rule) -> list[Piece]:
        """Return the one piece that replaces ``surface``."""
        return [Piece(0, len(surface), self._substitute(surface, entity_type, rule))]

    def _substitute(self, surface: str, entity_type: str, rule: Rule) -> str:
        fine_type = entity_type.lower()
        known = self._known(fine_type, surface)
        if known is not None:
            return known.substitute
        key = self._key(fine_type, surface)
        action = rule.action
        if action == "redact":
            return self._drawer.constant(
                fine_type, key, surface, entity_type, "[REDACTED]", action
            ).substitute
        if action == "mask":
            return self._drawer.constant(
                fine_type, key, surface, entity_type, _masked(surface, entity_type), action
            ).substitute
        if action == "hash":
            value = self._drawer.keyed_hash(fine_type, key)[:_HASH_LENGTH]
            return self._drawer.surrogate(
                fine_type, key, surface, entity_type, f"{entity_type}-{value}", action
            ).substitute
        if action == "surrogate":
            return self._surrogate(fine_type, key, surface, entity_type).substitute
        return self._drawer.placeholder(fine_type, key, surface, entity_type).substitute

    def _known(self, fine_type: str, surface: str) -> Entry | None:
        exact = self._memory.get(fine_type, EXACT_PREFIX + surface)
        if exact is not None:
            return exact
        known = self._memory.get(fine_type, entity_key(surface))
        return known if known is not None and known.original == surface else None

    def _key(self, fine_type: str, surface: str) -> str:
        key = entity_key(surface)
        return key if self._memory.get(fine_type, key) is None else EXACT_PREFIX + surface

    def _surrogate(self, fine_type: str, key: str, surface: str, entity_type: str) -> Entry:
        if entity_type == DATE:
            return self._date(fine_type, key, surface)
        same = self._memory.same_digits(fine_type, surface)
        if same is not None:
            poured = pour_digits(digits(same.substitute), surface)
            if poured is not None and not self._memory.literal(poured):
                return self._drawer.surrogate(
                    fine_type, key, surface, entity_type, poured, "reformatted"
                )
        return self._made(fine_type, key, surface, entity_type)

    def _made(self, fine_type: str, key: str, surface: str, entity_type: str) -> Entry:
        surrogate = surrogate_for(entity_type)
        for attempt in range(_TRIES):
            context = SurrogateContext(domains=self._drawer.domains, attempt=attempt)
            try:
                made = surrogate.make(surface, self._drawer.rng, context)
            except (SurrogateExhausted, SurrogateUnsupported):
                break
            if not self._memory.literal(made):
                return self._drawer.surrogate(
                    fine_type, key, surface, entity_type, made, "surrogate"
                )
        return self._drawer.placeholder(fine_type, key, surface, entity_type)

    def _date(self, fine_type: str, key: str, surface: str) -> Entry:
        shifted = shift_date(surface, self._drawer.day_shift())
        if shifted is None or self._memory.is_issued(shifted) or shifted == surface:
            return self._drawer.placeholder(fine_type, key, surface, DATE)
        return self._drawer.surrogate(fine_type, key, surface, DATE, shifted, "shifted")


def pour_digits(number: str, pattern: str) -> str | None:
    """Write the digits of ``number`` into the digit places of ``pattern``; None if they differ."""
    if sum(c.isdigit() for c in pattern) != len(number):
        return None
    source = iter(number)
    return "".join(next(source) if c.isdigit() else c for c in pattern)


def _masked(surface: str, entity_type: str) -> str:
    """Hide letters and digits; the last digits of a long number stay, as on a receipt."""
    tail = surface[-_VISIBLE_TAIL:]
    shown = entity_type in _NUMBERS and tail.isdigit() and len(digits(surface)) > 2 * _VISIBLE_TAIL
    hidden = surface[:-_VISIBLE_TAIL] if shown else surface
    return "".join("*" if c.isalnum() else c for c in hidden) + (tail if shown else "")
