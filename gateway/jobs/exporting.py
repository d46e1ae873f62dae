"""Rows encoded and noised in a thread of their own, before the worker of their job starts."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from learning.methods.base import Export


class Exporting:
    """An export under way.

    Args:
        work: Makes it, asking now and then whether it was cancelled.
    """

    def __init__(self, work: Callable[[Callable[[], bool]], Export | None]) -> None:
        self._cancelled = threading.Event()
        pool = ThreadPoolExecutor(1, "penname-export")
        self._future = pool.submit(work, self._cancelled.is_set)
        pool.shutdown(wait=False)

    def cancel(self) -> None:
        """Ask it to end soon."""
        self._cancelled.set()

    def done(self) -> bool:
        return self._future.done()

    def result(self) -> Export | None:
        """Return the export, None when it was cancelled; raises what it raised."""
        return self._future.result()
