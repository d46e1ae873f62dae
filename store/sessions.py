"""Sessions: which original travels under which substitute, and what that has cost.

`SessionStore.apply` is the only way to change one.  It locks the session, reads it, lets the
caller plan, and stores entries and charges in the same transaction: no request can see half of
it, no two requests can draw for the same entity, and what fails costs nothing.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import Select, delete, func, select, tuple_, update
from sqlalchemy.orm import Session

from privacy.substitution.entry import Entry
from store.crypto import DataKey
from store.errors import NotFound, StoreConflict
from store.ledger import DAYS, ENTITY, Ledger, LedgerRow, Spending, add_charges
from store.models import SessionRow, new_id
from store.session_rows import (
    Head,
    head,
    heads,
    insert_entries,
    insert_session,
    load,
    seal_state,
    session_key,
    session_ref,
)
from store.snapshots import Change, Snapshot, SnapshotCache

if TYPE_CHECKING:
    from store.database import Database

__all__ = ["Change", "Entry", "SessionInfo", "SessionStore", "Snapshot"]

DAY: Final = 86_400.0
_TOUCH_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)
_builtin_list = list


@dataclass(frozen=True)
class SessionInfo:
    """A line of the list of sessions; times in seconds since the epoch, UTC."""

    session_id: str
    policy: str
    version: int
    created_at: float
    last_used_at: float


class SessionStore:
    """Sessions of all tenants.  Thread-safe; several processes may work on one database."""

    def __init__(
        self,
        db: "Database",
        *,
        ttl: float | None = 30 * DAY,
        max_sessions: int = 100_000,
        cached_sessions: int = 2_000,
        cached_entries: int = 200_000,
    ) -> None:
        """Args:
        db: An upgraded database.
        ttl: Seconds without use after which a session is forgotten; None: never.
        max_sessions: Per tenant; a new session beyond it forgets the one unused for longest.
        cached_sessions: Decrypted snapshots kept in memory.
        cached_entries: Entries over all snapshots kept in memory.
        """
        self._db = db
        self._ttl = ttl
        self._max_sessions = max_sessions
        self._cache = SnapshotCache(cached_sessions, cached_entries)
        self._ledger = Ledger(db)

    def open(self, tenant_id: str, session_id: str, policy: str) -> Snapshot:
        """Return the session, made on first use (or when its time to live is over).

        Costs one indexed SELECT while the snapshot is cached; notes use about once a minute.

        Args:
            session_id: Opaque, 1 to 128 characters; stored encrypted.
            policy: What to record as the session's policy, at most 200 characters.

        Raises:
            UnknownTenant: There is no such tenant.
            ValueError: The session id is empty or too long.
        """
        _check_id(session_id)
        known = self._db.tenants.remembered(tenant_id)
        if known is not None:
            snapshot = self._open_cached(known[1], tenant_id, session_id, policy)
            if snapshot is not None:
                return snapshot
        try:
            return self._open_slowly(tenant_id, session_id, policy)
        except StoreConflict:
            # On PostgreSQL another process may make the same session at the same moment.
            return self._open_slowly(tenant_id, session_id, policy)

    def _open_slowly(self, tenant_id: str, session_id: str, policy: str) -> Snapshot:
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            pk, snapshot = self._open_row(session, key, tenant_id, session_id, policy)
        self._cache.put(pk, snapshot)
        return snapshot

    def _open_cached(
        self, key: DataKey, tenant_id: str, session_id: str, policy: str
    ) -> Snapshot | None:
        now = time.time()
        with self._db.read() as session:
            row = session.execute(
                select(
                    SessionRow.id, SessionRow.version, SessionRow.policy, SessionRow.last_used_at
                ).where(
                    SessionRow.tenant_id == tenant_id,
                    SessionRow.ref == session_ref(key, session_id),
                )
            ).one_or_none()
        if row is None or row.policy != policy or now - row.last_used_at > self._touch_after():
            return None
        return self._cache.get(row.id, row.version)

    def _touch_after(self) -> float:
        return _TOUCH_SECONDS if self._ttl is None else min(_TOUCH_SECONDS, self._ttl / 10)

    def _open_row(
        self, session: Session, key: DataKey, tenant_id: str, session_id: str, policy: str
    ) -> tuple[str, Snapshot]:
        now = time.time()
        row = self._locked(session, key, tenant_id, session_id)
        if row is not None and self._ttl is not None and now - row.last_used_at > self._ttl:
            session.execute(delete(SessionRow).where(SessionRow.id == row.pk))
            self._cache.drop(row.pk)
            row = None
        if row is None:
            self._make_room(session, tenant_id)
            insert_session(
                session,
                key,
                tenant_id,
                session_id,
                new_id("sess_"),
                policy=policy,
                created_at=now,
                last_used_at=now,
            )
            row = self._locked(session, key, tenant_id, session_id)
            if row is None:  # pragma: no cover - it was inserted in this very transaction
                raise StoreConflict("The session vanished while it was made.")
        else:
            # A new policy is a new version: cached snapshots carry the old one.
            version = row.version + (row.policy != policy)
            session.execute(
                update(SessionRow)
                .where(SessionRow.id == row.pk)
                .values(last_used_at=now, policy=policy, version=version)
            )
            row = replace(row, last_used_at=now, policy=policy, version=version)
        return row.pk, self._snapshot(session, key, tenant_id, session_id, row)

    def _make_room(self, session: Session, tenant_id: str) -> None:
        count = session.scalar(
            select(func.count()).select_from(SessionRow).where(SessionRow.tenant_id == tenant_id)
        )
        surplus = (count or 0) + 1 - self._max_sessions
        if surplus <= 0:
            return
        oldest = (
            select(SessionRow.id)
            .where(SessionRow.tenant_id == tenant_id)
            .order_by(SessionRow.last_used_at, SessionRow.id)
            .limit(surplus)
        )
        self._delete(session, oldest)
        _log.warning("the cap on sessions was reached; forgot %d unused for longest", surplus)

    def _delete(self, session: Session, which: Select[str]) -> int:
        pks = _builtin_list(session.scalars(which))
        for start in range(0, len(pks), 500):
            session.execute(delete(SessionRow).where(SessionRow.id.in_(pks[start : start + 500])))
        for pk in pks:
            self._cache.drop(pk)
        return len(pks)

    def apply(
        self,
        tenant_id: str,
        session_id: str,
        request_id: str,
        plan: Callable[[Snapshot], Change],
    ) -> Snapshot:
        """Change a session in one transaction and return its new snapshot.

        The session is locked first and read then, so ``plan`` sees everything that any earlier
        request stored, whichever process ran it.  While it runs, ``snapshot.spending`` answers for
        the tenant's and the entities' budgets.  On SQLite all other writers wait for it: it should
        compute and return.  An empty change writes nothing.

        Args:
            request_id: Recorded with the charges, at most 128 characters.
            plan: Called once.  Whatever it raises is passed on; nothing is stored or charged.

        Raises:
            NotFound: The session was never opened, or was forgotten meanwhile.
            StoreConflict: An entry repeats a (fine type, key) or a substitute of the session.
            StoreUnavailable: The database cannot serve; nothing was stored or charged.
        """
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            row = self._locked(session, key, tenant_id, session_id)
            if row is None:
                raise _no_session()
            before = self._snapshot(session, key, tenant_id, session_id, row)
            spending = Spending(session, tenant_id)
            try:
                change = plan(replace(before, spending=spending))
            finally:
                spending.close()
            if change.empty:
                after = before
            else:
                after = self._store(session, key, row, before, request_id, change)
        self._cache.put(row.pk, after)
        return after

    def _store(
        self,
        session: Session,
        key: DataKey,
        row: Head,
        before: Snapshot,
        request_id: str,
        change: Change,
    ) -> Snapshot:
        now = time.time()
        tenant_id = before.tenant_id
        own = session_key(key, tenant_id, row)
        insert_entries(session, own, tenant_id, row.pk, len(before.entries), change.entries)
        ref = session_ref(key, before.session_id)
        spent = add_charges(session, tenant_id, ref, ENTITY, request_id, change.charges)
        state = before.state if change.state is None else dict(change.state)
        session.execute(
            update(SessionRow)
            .where(SessionRow.id == row.pk)
            .values(
                version=row.version + 1,
                last_used_at=now,
                sealed_state=seal_state(own, tenant_id, row.pk, state),
            )
        )
        return replace(
            before,
            version=row.version + 1,
            entries=before.entries + tuple(change.entries),
            spent_epsilon=before.spent_epsilon + spent.epsilon,
            spent_delta=before.spent_delta + spent.delta,
            last_used_at=now,
            state=state,
        )

    def _locked(
        self, session: Session, key: DataKey, tenant_id: str, session_id: str
    ) -> Head | None:
        row = session.execute(
            heads()
            .where(
                SessionRow.tenant_id == tenant_id, SessionRow.ref == session_ref(key, session_id)
            )
            .with_for_update()
        ).one_or_none()
        return None if row is None else head(row)

    def _snapshot(
        self, session: Session, key: DataKey, tenant_id: str, session_id: str, row: Head
    ) -> Snapshot:
        found = self._cache.get(row.pk, row.version)
        if found is not None:
            return replace(found, last_used_at=row.last_used_at)
        own = session_key(key, tenant_id, row)
        return load(session, own, tenant_id, session_id, session_ref(key, session_id), row)

    def get(self, tenant_id: str, session_id: str) -> Snapshot | None:
        """Return the session without making or touching it; None when there is none."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            found = session.execute(
                heads().where(
                    SessionRow.tenant_id == tenant_id,
                    SessionRow.ref == session_ref(key, session_id),
                )
            ).one_or_none()
            if found is None:
                return None
            row = head(found)
            if self._ttl is not None and time.time() - row.last_used_at > self._ttl:
                return None
            return self._snapshot(session, key, tenant_id, session_id, row)

    def list(
        self, tenant_id: str, limit: int = 1_000, after: str | None = None
    ) -> _builtin_list[SessionInfo]:
        """Return the tenant's sessions, last used first, from the one after session id ``after``.

        Raises NotFound when ``after`` is no session of the tenant.
        """
        query = (
            heads()
            .where(SessionRow.tenant_id == tenant_id)
            .order_by(SessionRow.last_used_at.desc(), SessionRow.id.desc())
            .limit(limit)
        )
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            if after is not None:
                last = session.execute(
                    select(SessionRow.last_used_at, SessionRow.id).where(
                        SessionRow.tenant_id == tenant_id,
                        SessionRow.ref == session_ref(key, after),
                    )
                ).one_or_none()
                if last is None:
                    raise _no_session()
                query = query.where(tuple_(SessionRow.last_used_at, SessionRow.id) < tuple_(*last))
            rows = [head(row) for row in session.execute(query)]
        return [
            SessionInfo(
                key.open(row.sealed_id, tenant_id, "sessions", row.pk, "id").decode(),
                row.policy,
                row.version,
                row.created_at,
                row.last_used_at,
            )
            for row in rows
        ]

    def forget(self, tenant_id: str, session_id: str) -> bool:
        """Destroy a session's key and rows; False when there was none.

        Its ledger rows stay: they hold HMACs of entities and of the id, but no original.
        """
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            which = select(SessionRow.id).where(
                SessionRow.tenant_id == tenant_id, SessionRow.ref == session_ref(key, session_id)
            )
            gone = self._delete(session, which)
        if gone:
            self._db.scrub()
        return gone > 0

    def expire(self, ttl: float | None = None, tenant_id: str | None = None) -> int:
        """Forget sessions unused for ``ttl`` seconds (default: the store's); returns how many."""
        limit = self._ttl if ttl is None else ttl
        if limit is None:
            return 0
        which = select(SessionRow.id).where(SessionRow.last_used_at < time.time() - limit)
        if tenant_id is not None:
            which = which.where(SessionRow.tenant_id == tenant_id)
        with self._db.write() as session:
            gone = self._delete(session, which)
        if gone:
            self._db.scrub()
        return gone

    def ledger(self, tenant_id: str, session_id: str) -> _builtin_list[LedgerRow]:
        """Return the charges made under a session id, in order, forgotten sessions included.

        These are the accounts that `privacy.accounting.totals` adds up: entity and days.
        """
        return self._ledger.rows(tenant_id, session_id, accounts=(ENTITY, DAYS))


def _check_id(session_id: str) -> None:
    if not 1 <= len(session_id) <= 128:
        raise ValueError("A session id has 1 to 128 characters.")


def _no_session() -> NotFound:
    return NotFound("There is no such session: it was never opened, or it was forgotten.")
