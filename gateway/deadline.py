"""One absolute deadline for a request: preparation and the upstream's answer together."""

import threading
import time

from privacy.interrupt import Interrupted


class Deadline:
    """The moment after which nobody waits for a request any more.

    The worker that prepares the request calls `check` now and then, and `seal` as the last thing
    before its charge is committed.  The event loop calls `cancel` when the time is over.  One of
    `seal` and `cancel` wins: a client that is told "too late" was not charged.

    Args:
        seconds: Time from now.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._sealed = False
        self._cancelled = False

    def remaining(self) -> float:
        """Return the seconds left, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise Interrupted when the time is over."""
        if self._cancelled or (not self._sealed and time.monotonic() >= self._end):
            raise Interrupted

    def seal(self) -> None:
        """Decide that the preparation counts.  Raises Interrupted when it is too late for that."""
        with self._lock:
            self.check()
            self._sealed = True

    def cancel(self) -> bool:
        """Decide that the preparation is given up; False when it is sealed and about to end."""
        with self._lock:
            self._cancelled = not self._sealed
            return self._cancelled
