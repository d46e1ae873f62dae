"""The last look at the outbound body: no original of the session may be left (fail closed)."""

from collections.abc import Callable, Sequence

import orjson

from gateway.carriers import strings_of
from privacy.detection.matcher import KnownMatcher
from privacy.substitution.entry import INITIAL
from privacy.substitution.known import KnownOriginals
from privacy.types import Span


class GuardBlocked(Exception):
    """An original was about to leave; nothing was forwarded or charged."""

    def __init__(self, types: Sequence[str]) -> None:
        super().__init__(
            "The outbound guard found a known value that would have left unprotected "
            f"(type {', '.join(sorted(set(types)))}). The request was not forwarded."
        )


def check_outbound(
    payload: bytes, known: KnownOriginals, passed: Callable[[str], int] = lambda _: 0
) -> list[str]:
    """Search the serialised body for the session's originals and return its strings.

    A match inside an issued substitute is no leak: a substitute drawn earlier may happen to equal
    a name that turns up later.

    Args:
        payload: The outbound body.
        known: Every original of the session, those of this request included.
        passed: Of how many of the session's entries a string is known to be clear.

    Raises:
        GuardBlocked: an original is left.
    """
    texts = list(dict.fromkeys(strings_of(orjson.loads(payload))))
    issued: KnownMatcher | None = None
    for text in texts:
        hits = known.find(text, since=passed(text))
        if not hits:
            continue
        if issued is None:
            issued = KnownMatcher(
                (e.substitute, e.type) for e in known.entries if e.fine_type != INITIAL
            )
        covered = issued.find(text, hits)
        left = [hit for hit in hits if not _inside(hit, covered)]
        if left:
            raise GuardBlocked([hit.type for hit in left])
    return texts


def _inside(hit: Span, covered: Sequence[Span]) -> bool:
    return any(c.start <= hit.start and hit.end <= c.end for c in covered)
