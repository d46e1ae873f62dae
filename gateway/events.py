"""What happens to a request, as typed events: the demo, metrics and the audit log subscribe.

Events may hold originals: subscribers live inside the trust boundary and decide what they keep.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One piece of context that was added to the question."""

    file_id: str
    filename: str = field(repr=False)
    text: str = field(repr=False)
    score: float


@dataclass(frozen=True, slots=True)
class EntityReport:
    """One entity of a request, with what this request was charged for it.

    A draw counts at the first mention that holds it, a known substitute costs nothing: the sum over a
    session's reports is what the session spent.
    """

    original: str = field(repr=False)
    substitute: str = field(repr=False)
    type: str
    recognizer: str
    epsilon: float


@dataclass(frozen=True, slots=True)
class Sanitised:
    """A request was sanitised, charged and has passed the guard."""

    request_id: str
    tenant_id: str
    session_id: str
    policy: str
    context: tuple[Retrieved, ...]
    entities: tuple[EntityReport, ...]
    epsilon_charged: float
    epsilon_spent: float
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """The upstream answered: its own text and the restored one, for each choice."""

    request_id: str
    session_id: str
    received: tuple[str, ...] = field(repr=False)
    restored: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """A request ended with an error before or at the upstream; ``code`` is the client's."""

    request_id: str
    tenant_id: str
    status: int
    code: str | None


Event = Sanitised | Answered | Refused
Subscriber = Callable[[Event], None]


class EventBus:
    """Delivers each event to every subscriber, in order, in the emitting thread."""

    def __init__(self, subscribers: Sequence[Subscriber] = ()) -> None:
        self._subscribers = list(subscribers)

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:
                # An observer's fault must not fail the request it observes; its text may quote it.
                _log.error(
                    "a subscriber failed on %s: %s", type(event).__name__, type(error).__name__
                )
