"""The last look at the outbound body (fail closed).

No original of the session may be left anywhere, and what no detector has read, such as the protocol's
own values, may not look like a secret, an address or the number of a card, an account or a person.
"""

from collections.abc import Callable, Container, Sequence
from typing import Final

import orjson

from gateway.carriers import strings_of
from privacy.detection.matcher import KnownMatcher
from privacy.detection.protected import is_bytes_url
from privacy.detection.recognizers.credit_card import CreditCardRecognizer
from privacy.detection.recognizers.email import EmailRecognizer
from privacy.detection.recognizers.iban import IbanRecognizer
from privacy.detection.recognizers.secret import SecretRecognizer
from privacy.detection.recognizers.us_ssn import UsSsnRecognizer
from privacy.detection.windows import find_windowed
from privacy.substitution.entry import INITIAL
from privacy.substitution.known import KnownOriginals
from privacy.types import Span

_HIGH_RISK: Final = (
    CreditCardRecognizer(),
    EmailRecognizer(),
    IbanRecognizer(),
    SecretRecognizer(),
    UsSsnRecognizer(),
)
_SURE: Final = 0.8


class GuardBlocked(Exception):
    """An original was about to leave; nothing was forwarded or charged."""

    def __init__(self, types: Sequence[str]) -> None:
        super().__init__(
            "The outbound guard found a known value that would have left unprotected "
            f"(type {', '.join(sorted(set(types)))}). The request was not forwarded."
        )


def check_outbound(
    payload: bytes,
    known: KnownOriginals,
    read: Container[str],
    passed: Callable[[str], int] = lambda _: 0,
) -> list[str]:
    """Search the serialised body and return its strings.

    A match inside an issued substitute is no leak: a substitute drawn earlier may happen to equal
    a name that turns up later.

    Args:
        payload: The outbound body.
        known: Every original of the session, those of this request included.
        read: Texts that detectors have read and the planner has written.
        passed: Of how many of the session's entries a string is known to be clear.

    Raises:
        GuardBlocked: an original is left, or a value of high risk in a place that nobody read.
    """
    body = orjson.loads(payload)
    # The upstream's model is the operator's word: "claude-x" is nobody's name.
    body.pop("model", None)
    texts = list(dict.fromkeys(strings_of(body)))
    issued: KnownMatcher | None = None
    for text in texts:
        hits = known.find(text, since=passed(text))
        if text not in read and text[:1] not in ("{", "["):
            hits += high_risk(text)
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


def high_risk(text: str) -> tuple[Span, ...]:
    """Return what looks like a value that may never leave; the content of a data URL is no text."""
    if is_bytes_url(text):
        return ()
    found = (span for recognizer in _HIGH_RISK for span in find_windowed(recognizer.find, text))
    return tuple(span for span in found if span.score >= _SURE)


def _inside(hit: Span, covered: Sequence[Span]) -> bool:
    return any(c.start <= hit.start and hit.end <= c.end for c in covered)
