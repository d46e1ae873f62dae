"""What the earlier requests of a session settled, so that a resent history is not read again.

A client resends its whole history with each message.  A text that was settled stands until an
original that came later is found in it (`KnownOriginals`), and a string that passed the guard has to be
searched for the later originals alone.  In memory only, bounded, dropped with the session.
"""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable

from privacy.substitution.planner import Kept, Settled
from store.sessions import Snapshot

_SESSIONS = 512
_TEXTS = 2_000
_CHARACTERS = 64 * 1024 * 1024
_SESSION_CHARACTERS = 8 * 1024 * 1024

# A text and the way it was read: with echoes of substitutes or without, detected here or elsewhere.
TextKey = tuple[str, str]


class SettledTexts:
    """The settled texts of one session."""

    def __init__(self, created_at: float) -> None:
        self.created_at = created_at
        self.characters = 0
        self._texts: OrderedDict[TextKey, Kept] = OrderedDict()
        self._passed: OrderedDict[bytes, int] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: TextKey) -> Kept | None:
        """Return what was settled for a text."""
        with self._lock:
            if key in self._texts:
                self._texts.move_to_end(key)
            return self._texts.get(key)

    def belongs_to(self, snapshot: Snapshot) -> bool:
        """Tell whether this is about the session of a snapshot, not a forgotten one of that id."""
        return self.created_at == snapshot.created_at

    def passed(self, text: str) -> int:
        """Return of how many entries a string of the outbound body is known to be clear."""
        with self._lock:
            return self._passed.get(_digest(text), 0)

    def keep(
        self, settled: Iterable[tuple[TextKey, Settled]], outbound: Iterable[str], known: int
    ) -> None:
        """Remember a request that passed the guard in a session of ``known`` entries."""
        with self._lock:
            for key, done in settled:
                if key not in self._texts:
                    self.characters += len(done.item.text) + len(done.text)
                self._texts[key] = Kept(done, known)
                self._texts.move_to_end(key)
            for text in outbound:
                digest = _digest(text)
                self._passed[digest] = known
                self._passed.move_to_end(digest)
            while len(self._texts) > _TEXTS or self.characters > _SESSION_CHARACTERS:
                _, gone = self._texts.popitem(last=False)
                self.characters -= len(gone.settled.item.text) + len(gone.settled.text)
            while len(self._passed) > 2 * _TEXTS:
                self._passed.popitem(last=False)


class SettledSessions:
    """The settled texts of the sessions used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], SettledTexts] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tenant_id: str, session_id: str) -> SettledTexts:
        """Return the texts of a session, empty ones when nothing is remembered."""
        with self._lock:
            return self._kept.get((tenant_id, session_id)) or SettledTexts(0.0)

    def of(self, snapshot: Snapshot) -> SettledTexts:
        """Return the texts of a session to add to; those of a forgotten session are dropped."""
        key = (snapshot.tenant_id, snapshot.session_id)
        with self._lock:
            found = self._kept.get(key)
            if found is None or not found.belongs_to(snapshot):
                found = self._kept[key] = SettledTexts(snapshot.created_at)
            self._kept.move_to_end(key)
            while len(self._kept) > _SESSIONS or self._size() > _CHARACTERS:
                self._kept.popitem(last=False)
            return found

    def forget(self, tenant_id: str, session_id: str) -> None:
        """Drop the texts of a session that is forgotten."""
        with self._lock:
            self._kept.pop((tenant_id, session_id), None)

    def _size(self) -> int:
        return sum(texts.characters for texts in self._kept.values())


class Forgotten:
    """The sessions forgotten last: a request under way must not keep what it knows of one."""

    def __init__(self) -> None:
        self._at: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, tenant_id: str, session_id: str) -> None:
        """Note that a session was forgotten just now."""
        with self._lock:
            self._at[tenant_id, session_id] = time.time()
            self._at.move_to_end((tenant_id, session_id))
            while len(self._at) > _SESSIONS:
                self._at.popitem(last=False)

    def holds(self, snapshot: Snapshot) -> bool:
        """Tell whether this very session was forgotten, not an earlier one of its id."""
        with self._lock:
            at = self._at.get((snapshot.tenant_id, snapshot.session_id))
        return at is not None and snapshot.created_at <= at


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
