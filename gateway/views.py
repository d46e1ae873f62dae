"""What is derived from a session's map, kept while its version stands."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from privacy.detection.matcher import KnownMatcher
from privacy.restoration import Restorer
from privacy.substitution.pairs import restoration_pairs
from privacy.substitution.planner import known_originals
from store.sessions import Snapshot

_KEPT = 512


@dataclass(frozen=True, slots=True)
class SessionView:
    """The matcher of a session's originals and the restorer of its substitutes."""

    matcher: KnownMatcher
    restorer: Restorer


class Views:
    """A small cache of views by (tenant, session, version)."""

    def __init__(self, *, fuzzy: bool) -> None:
        self._fuzzy = fuzzy
        self._kept: OrderedDict[tuple[str, str, int], SessionView] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, snapshot: Snapshot) -> SessionView:
        key = (snapshot.tenant_id, snapshot.session_id, snapshot.version)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        view = SessionView(
            KnownMatcher(known_originals(snapshot.entries)),
            Restorer(restoration_pairs(snapshot.entries), fuzzy=self._fuzzy),
        )
        with self._lock:
            self._kept[key] = view
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return view

    def forget(self, tenant_id: str, session_id: str) -> None:
        """Drop what was derived from a session that is forgotten."""
        with self._lock:
            for key in [k for k in self._kept if k[:2] == (tenant_id, session_id)]:
                del self._kept[key]
