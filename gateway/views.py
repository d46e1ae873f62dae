"""What is derived from a session's map, kept while its version stands."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from privacy.restoration import Restorer
from privacy.substitution.known import KnownOriginals
from privacy.substitution.pairs import restoration_pairs
from store.sessions import Snapshot

_KEPT = 512


class SessionView:
    """The index of a session's originals and the restorer of its substitutes, built when needed."""

    def __init__(
        self, known: KnownOriginals, fuzzy: bool, real_name: Callable[[str], bool]
    ) -> None:
        self.known = known
        self._fuzzy = fuzzy
        self._real_name = real_name
        self._restorer: Restorer | None = None

    @property
    def restorer(self) -> Restorer:
        if self._restorer is None:
            self._restorer = Restorer(
                restoration_pairs(self.known.entries),
                fuzzy=self._fuzzy,
                real_name=self._real_name,
            )
        return self._restorer


class Views:
    """A small cache of views by (tenant, session, version)."""

    def __init__(self, *, fuzzy: bool, real_name: Callable[[str], bool]) -> None:
        self._fuzzy = fuzzy
        self._real_name = real_name
        self._kept: OrderedDict[tuple[str, str, float, int], SessionView] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot, known: KnownOriginals | None = None) -> SessionView:
        """Return the view of a snapshot; ``known`` is its index where the caller has it."""
        key = (snapshot.tenant_id, snapshot.session_id, snapshot.created_at, snapshot.version)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                known = known or KnownOriginals(snapshot.entries)
                found = self._kept[key] = SessionView(known, self._fuzzy, self._real_name)
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return found

    def forget(self, tenant_id: str, session_id: str) -> None:
        """Drop what was derived from a session that is forgotten."""
        with self._lock:
            for key in [k for k in self._kept if k[:2] == (tenant_id, session_id)]:
                del self._kept[key]
