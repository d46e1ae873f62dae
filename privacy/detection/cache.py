"""A cache of detection results, bounded by entries and by bytes.

Keys are BLAKE2b digests, so the cache holds offsets and types but no text.
"""

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import Final

from privacy.types import Span

# One Span with its two small integers, measured with sys.getsizeof, rounded up.
_SPAN_BYTES: Final = 200
_ENTRY_BYTES: Final = 250


class SpanCache:
    """Least recently used results; thread-safe.

    Args:
        entries: Most results kept; 0 turns the cache off.
        size: Most bytes kept, estimated from the number of spans.
    """

    def __init__(self, entries: int, size: int) -> None:
        if entries < 0 or size < 0:
            raise ValueError("cache bounds must not be negative")
        self._entries = entries
        self._size = size
        self._used = 0
        self._lock = Lock()
        self._data: OrderedDict[bytes, tuple[Span, ...]] = OrderedDict()

    @staticmethod
    def key(text: str) -> bytes:
        """Return the 32-byte digest of ``text``; lone surrogates included."""
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()

    def get(self, key: bytes) -> tuple[Span, ...] | None:
        """Return the spans kept under ``key``, or None."""
        with self._lock:
            spans = self._data.get(key)
            if spans is not None:
                self._data.move_to_end(key)
            return spans

    def put(self, key: bytes, spans: tuple[Span, ...]) -> None:
        """Keep ``spans`` under ``key`` and drop the oldest results beyond the bounds."""
        cost = _cost(spans)
        if self._entries == 0 or cost > self._size:
            return
        with self._lock:
            if key in self._data:
                self._used -= _cost(self._data.pop(key))
            self._data[key] = spans
            self._used += cost
            while len(self._data) > self._entries or self._used > self._size:
                _, dropped = self._data.popitem(last=False)
                self._used -= _cost(dropped)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._data.clear()
            self._used = 0

    def __len__(self) -> int:
        with self._lock:
            return len(self._data)

    @property
    def used_bytes(self) -> int:
        """Return the estimated bytes in use."""
        with self._lock:
            return self._used


def _cost(spans: tuple[Span, ...]) -> int:
    return _ENTRY_BYTES + _SPAN_BYTES * len(spans)
