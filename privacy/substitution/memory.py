"""The working copy of a session's map while one request is planned."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from privacy.accounting import Charge
from privacy.substitution.entry import EXACT_PREFIX, INITIAL, MENTION, Entry
from privacy.substitution.shapes import entity_key

_DIGIT = re.compile(r"\d")


def digits(text: str) -> str:
    """Return the digits of ``text``, separators dropped."""
    return "".join(_DIGIT.findall(text))


class Memory:
    """Entries of a session, indexed for planning; what a plan adds is kept apart."""

    def __init__(self, entries: Iterable[Entry], texts: Iterable[str]) -> None:
        self.new: list[Entry] = []
        self.charges: list[Charge] = []
        self.taken: dict[str, set[int]] = defaultdict(set)
        self.issued: set[str] = set()
        self._by_key: dict[tuple[str, str], Entry] = {}
        self._named: dict[str, Entry] = {}
        self._by_digits: dict[tuple[str, str], Entry] = {}
        self._originals: set[str] = set()
        self._mentions: list[Entry] = []
        self._issued_mentions: set[str] = set()
        self.texts = tuple(texts)
        for entry in entries:
            self._index(entry)

    def add(self, entry: Entry, charge: Charge | None = None) -> Entry:
        """Remember a new entry, and the draw that it cost."""
        self._index(entry)
        self.new.append(entry)
        if charge is not None:
            self.charges.append(charge)
        return entry

    def get(self, fine_type: str, key: str) -> Entry | None:
        return self._by_key.get((fine_type, key))

    def named(self, surface: str) -> Entry | None:
        """Return the person's part, organisation or place that ``surface`` already names.

        One value has one substitute, whatever type a detector gives it in another sentence.
        """
        exact = self._named.get(EXACT_PREFIX + surface)
        return exact if exact is not None else self._named.get(entity_key(surface))

    def same_digits(self, fine_type: str, surface: str) -> Entry | None:
        """Return the entry of the same number written with other separators."""
        number = digits(surface)
        return self._by_digits.get((fine_type, number)) if len(number) >= 6 else None

    def knows_original(self, surface: str) -> bool:
        return entity_key(surface) in self._originals

    def is_issued(self, surface: str) -> bool:
        return entity_key(surface) in self.issued

    def quotes_substitute(self, surface: str) -> bool:
        """Tell whether ``surface`` is made of substitutes that this session issued itself."""
        key = entity_key(surface)
        if key in self.issued:
            return key not in self._originals
        return key in self._issued_mentions

    def mentions(self) -> Sequence[Entry]:
        return self._mentions

    def originals_of(self, fine_type: str) -> list[str]:
        """Return the session's originals of one fine type."""
        return [entry.original for (kind, _), entry in self._by_key.items() if kind == fine_type]

    def literal(self, text: str) -> bool:
        """Tell whether ``text`` is taken: issued, an original, or literally in the texts."""
        key = entity_key(text)
        return key in self.issued or key in self._originals or key in self._text

    @cached_property
    def _text(self) -> str:
        return "\n".join(self.texts).casefold()

    def _index(self, entry: Entry) -> None:
        self._by_key[(entry.fine_type, entry.key)] = entry
        if entry.fine_type == MENTION:
            self._mentions.append(entry)
            self._issued_mentions.add(entity_key(entry.substitute))
            return
        if entry.pool_index is not None:
            self.taken[entry.fine_type].add(entry.pool_index)
        if entry.fine_type == INITIAL:
            return
        self.issued.add(entity_key(entry.substitute))
        self._originals.add(entity_key(entry.original))
        if entry.fine_type.startswith(("person.", "org", "loc.")):
            self._named.setdefault(entry.key, entry)
        else:
            number = digits(entry.original)
            if len(number) >= 6:
                self._by_digits.setdefault((entry.fine_type, number), entry)
