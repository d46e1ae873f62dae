"""Requests are accepted once: a nonce is remembered for as long as its timestamp is accepted."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable


class ReplayError(ValueError):
    """A payload is too old, from the future, or was seen before; ``code`` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ReplayGuard:
    """Remembers nonces.

    Args:
        window: Seconds that a timestamp may differ from this clock.
        most: Nonces remembered; when more are alive nothing is accepted.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, window: float = 60.0, most: int = 200_000, clock: Callable[[], float] = time.time
    ) -> None:
        self._window = window
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[bytes, float] = OrderedDict()

    def accept(self, nonce: bytes, timestamp_ms: int) -> None:
        """Take note of a payload.

        Raises:
            ReplayError: ``stale_timestamp``, ``replayed`` or ``too_many_requests``.
        """
        now = self._clock()
        if abs(now - timestamp_ms / 1000.0) > self._window:
            raise ReplayError(
                "stale_timestamp", "the timestamp is not current: check the clocks, send anew"
            )
        with self._lock:
            while self._seen and next(iter(self._seen.values())) < now:
                self._seen.popitem(last=False)
            if nonce in self._seen:
                raise ReplayError("replayed", "this payload was sent before: noise it anew")
            if len(self._seen) >= self._most:
                raise ReplayError("too_many_requests", "too many requests in too short a time")
            # Twice the window: a timestamp may lie ahead by one.
            self._seen[nonce] = now + 2.0 * self._window

    def forget(self, nonce: bytes) -> None:
        """Let a payload come again: it was turned away unanswered."""
        with self._lock:
            self._seen.pop(nonce, None)
