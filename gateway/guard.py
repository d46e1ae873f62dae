"""The last look at the outbound body: no original of the session may be left (fail closed)."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from gateway.carriers import strings_of
from privacy.detection.matcher import KnownMatcher
from privacy.substitution.entry import INITIAL, Entry
from privacy.types import Span


class GuardBlocked(Exception):
    """An original was about to leave; nothing was forwarded or charged."""

    def __init__(self, types: Sequence[str]) -> None:
        super().__init__(
            "The outbound guard found a known value that would have left unprotected "
            f"(type {', '.join(sorted(set(types)))}). The request was not forwarded."
        )


def check_outbound(payload: bytes, matcher: KnownMatcher, entries: Iterable[Entry]) -> None:
    """Search the serialised body for the session's originals.

    A match inside an issued substitute is no leak: a substitute drawn earlier may happen to equal
    a name that turns up later.

    Raises:
        GuardBlocked: an original is left.
    """
    issued: KnownMatcher | None = None
    for text in _distinct(orjson.loads(payload)):
        hits = matcher.find(text)
        if not hits:
            continue
        if issued is None:
            issued = KnownMatcher((e.substitute, e.type) for e in entries if e.fine_type != INITIAL)
        covered = issued.find(text, hits)
        left = [hit for hit in hits if not _inside(hit, covered)]
        if left:
            raise GuardBlocked([hit.type for hit in left])


def _distinct(body: Any) -> Iterable[str]:
    return dict.fromkeys(strings_of(body))


def _inside(hit: Span, covered: Sequence[Span]) -> bool:
    return any(c.start <= hit.start and hit.end <= c.end for c in covered)
