"""The values that sessions are read and written as, and the cache of what was decrypted."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

from privacy.accounting.charges import Charge
from privacy.substitution.entry import Entry
from store.ledger import Spending


@dataclass(frozen=True)
class Snapshot:
    """A session at one version.  Shared between threads: treat it as immutable.

    Attributes:
        version: Grows by one with every change.
        spent_epsilon, spent_delta: Sums of the entity account over this session id, a forgotten
            session under the same id included: forgetting refunds nothing.
        policy: The policy that the session was last opened under.
        created_at, last_used_at: Seconds since the epoch, UTC; the latter to about a minute.
        state: Small JSON object, for example the date shift.
        spending: Budgets of the tenant and of entities; only there while a plan runs.
    """

    session_id: str
    tenant_id: str
    version: int
    entries: tuple[Entry, ...] = field(repr=False)
    spent_epsilon: float
    spent_delta: float
    policy: str
    created_at: float
    last_used_at: float
    state: Mapping[str, Any] = field(repr=False)
    spending: Spending | None = field(default=None, repr=False, compare=False)

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str], Entry]:
        """Entries by (fine type, key)."""
        return {(entry.fine_type, entry.key): entry for entry in self.entries}

    @cached_property
    def substitutes(self) -> frozenset[str]:
        """All substitutes, casefolded."""
        return frozenset(entry.substitute.casefold() for entry in self.entries)

    def find(self, fine_type: str, key: str) -> Entry | None:
        """Return the entry of a key, or None."""
        return self.by_key.get((fine_type, key))


@dataclass(frozen=True)
class Change:
    """What a plan wants stored, all or nothing.

    Attributes:
        entries: New entries.
        charges: New ledger rows of the entity account (metric ``days``: of the days account).
        state: The new state, or None to keep the old one.
    """

    entries: Sequence[Entry] = field(default=(), repr=False)
    charges: Sequence[Charge] = ()
    state: Mapping[str, Any] | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to store."""
        return not self.entries and not self.charges and self.state is None


class SnapshotCache:
    """The latest decrypted version of the sessions used last, in memory only.

    Bounded by sessions and by entries, so that neither many sessions nor large ones fill memory.
    """

    def __init__(self, max_sessions: int, max_entries: int) -> None:
        self._max_sessions = max_sessions
        self._max_entries = max_entries
        self._entries = 0
        self._known: OrderedDict[str, Snapshot] = OrderedDict()
        self._lock = Lock()

    def get(self, pk: str, version: int) -> Snapshot | None:
        """Return the session's snapshot if it is remembered at exactly this version."""
        with self._lock:
            found = self._known.get(pk)
            if found is None or found.version != version:
                return None
            self._known.move_to_end(pk)
            return found

    def put(self, pk: str, snapshot: Snapshot) -> None:
        """Remember a snapshot, unless a later version is there already."""
        with self._lock:
            old = self._known.get(pk)
            if old is not None and old.version > snapshot.version:
                return
            self._entries += len(snapshot.entries) - (len(old.entries) if old else 0)
            self._known[pk] = snapshot
            self._known.move_to_end(pk)
            while self._known and (
                len(self._known) > self._max_sessions or self._entries > self._max_entries
            ):
                _, gone = self._known.popitem(last=False)
                self._entries -= len(gone.entries)

    def drop(self, pk: str) -> None:
        """Forget a session."""
        with self._lock:
            gone = self._known.pop(pk, None)
            if gone is not None:
                self._entries -= len(gone.entries)
