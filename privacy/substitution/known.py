"""The originals of a session, indexed for the sweep and for the guard."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from privacy.detection.matcher import KnownMatcher
from privacy.substitution.entry import INITIAL, MENTION, Entry
from privacy.substitution.names import split_name
from privacy.types import PERSON, Span

_MOST_JOINED = 4
_LONG_WORD = re.compile(r"[^\W\d_]{2}(?:[^\W\d_]|['’-])*|[^\W\d_]['’][^\W\d_]+")


@dataclass(frozen=True, slots=True)
class TextItem:
    """One text of a request.

    Attributes:
        text: The original text.
        spans: Non-overlapping detected spans, sorted by start.
        echo: Whether the text may quote substitutes that were issued before (a client may resend
            what the model wrote); documents of the store never do.
    """

    text: str = field(repr=False)
    spans: tuple[Span, ...] = ()
    echo: bool = True


class KnownOriginals:
    """Finds the originals of a session, all of them or those that came after a point.

    A session's map only grows, so a text that was clear of its first ``n`` entries has to be searched
    for the later ones alone; that is what makes a long history cheap.  Thread-safe: what is built
    twice is the same.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self._matchers: dict[int, KnownMatcher] = {}

    def find(self, text: str, supported: Sequence[Span] = (), since: int = 0) -> list[Span]:
        """Return where the originals of ``entries[since:]`` stand, sorted, without overlaps.

        Args:
            text: Any text.
            supported: Detected spans, which vouch for everyday words.
            since: How many entries to leave out.
        """
        if since >= len(self.entries):
            return []
        matcher = self._matchers.get(since)
        if matcher is None:
            matcher = KnownMatcher(
                (surface, entry.type)
                for entry in self.entries[since:]
                for surface in _surfaces(entry)
            )
            self._matchers[since] = matcher
        return matcher.find(text, supported)

    def came_later(self, since: int, item: TextItem) -> bool:
        """Tell whether an original of ``entries[since:]`` stands in a text."""
        return bool(self.find(item.text, item.spans, since))


def _surfaces(entry: Entry) -> tuple[str, ...]:
    """Return what to look for: a person's whole name only written as one word, "#IlseVarga"."""
    if entry.fine_type == INITIAL:
        return ()
    if entry.fine_type == PERSON.lower():
        # Replaced as a whole, so its parts are in no entry of their own.
        parts = split_name(entry.original, lambda _: None)
        return (
            entry.original,
            *(entry.original[p.start : p.end] for p in parts if p.fine_type != INITIAL),
        )
    if entry.fine_type != MENTION:
        return (entry.original,)
    words = entry.original.replace(",", " ").split()
    if not 2 <= len(words) <= _MOST_JOINED or not all(_LONG_WORD.fullmatch(w) for w in words):
        return ()
    joined = "".join(words)
    return (joined, "".join(reversed(words))) if len(words) == 2 else (joined,)
