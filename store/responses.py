"""Stored responses: what a client may fetch again or continue, sealed under its session's key.

They belong to a session and end with it: forgetting or expiry destroys the key and the rows.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Row, Select, delete, insert, literal, select
from sqlalchemy.orm import aliased

from store.crypto import DataKey
from store.errors import NotFound
from store.models import ResponseRow, SessionRow
from store.session_rows import session_ref

if TYPE_CHECKING:
    from store.database import Database

MOST_TURNS: Final = 1_000


@dataclass(frozen=True)
class StoredResponse:
    """One turn.

    Attributes:
        session_id: The session that it belongs to.
        previous_id: The turn before, None for the first.
        content: Whatever was stored: a JSON object.
    """

    id: str
    session_id: str
    previous_id: str | None
    content: Mapping[str, Any] = field(repr=False)


class ResponseStore:
    """Responses of all tenants."""

    def __init__(self, db: "Database", *, ttl: float | None = None) -> None:
        """Args:
        db: An upgraded database.
        ttl: Seconds without use after which a session, and what belongs to it, is gone.
        """
        self._db = db
        self._ttl = ttl

    def add(
        self,
        tenant_id: str,
        session_id: str,
        response_id: str,
        previous_id: str | None,
        content: Mapping[str, Any],
        *,
        session_created_at: float,
    ) -> bool:
        """Store a turn; False when its session was forgotten, whatever has the same id now.

        Raises:
            StoreUnavailable: The database cannot serve; nothing was stored.
        """
        with self._db.write() as session:
            key = self._db.tenants.get(session, tenant_id)
            row = session.execute(
                select(SessionRow.id, SessionRow.wrapped_key)
                .where(
                    SessionRow.tenant_id == tenant_id,
                    SessionRow.ref == session_ref(key, session_id),
                    # Equal, not earlier: clocks of two gateways may differ.
                    SessionRow.created_at == session_created_at,
                )
                .with_for_update()
            ).one_or_none()
            if row is None:
                return False
            own = _unwrap(key, tenant_id, row.id, row.wrapped_key)
            session.execute(
                insert(ResponseRow).values(
                    id=response_id,
                    session_pk=row.id,
                    previous_id=previous_id,
                    sealed=own.seal(json.dumps(content).encode(), *_place(tenant_id, response_id)),
                    created_at=time.time(),
                )
            )
        return True

    def get(self, tenant_id: str, response_id: str) -> StoredResponse:
        """Return a turn.  Raises NotFound."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            query = self._rows(tenant_id).where(ResponseRow.id == response_id)
            row = session.execute(query).one_or_none()
        if row is None:
            raise _no_response()
        return _read(key, tenant_id, row)

    def chain(self, tenant_id: str, response_id: str) -> list[StoredResponse]:
        """Return a turn and all before it, oldest first.

        Raises:
            NotFound: There is no such turn, or one before it was deleted.
            OverflowError: There are more than `MOST_TURNS`.
        """
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            found = {row.id: row for row in session.execute(self._chain(tenant_id, response_id))}
        rows: list[Row[*tuple[Any, ...]]] = []
        wanted: str | None = response_id
        while wanted is not None:
            if len(rows) == MOST_TURNS:
                raise OverflowError("A conversation has too many turns.")
            if wanted not in found:
                raise _no_response()
            rows.append(found[wanted])
            wanted = rows[-1].previous_id
        return [_read(key, tenant_id, row) for row in reversed(rows)]

    def _chain(self, tenant_id: str, response_id: str) -> Select[*tuple[Any, ...]]:
        last = (
            select(ResponseRow.id, ResponseRow.previous_id, literal(1).label("depth"))
            .where(ResponseRow.id == response_id)
            .cte("turns", recursive=True)
        )
        before = aliased(ResponseRow)
        turns = last.union_all(
            select(before.id, before.previous_id, last.c.depth + 1).where(
                before.id == last.c.previous_id, last.c.depth <= MOST_TURNS
            )
        )
        return self._rows(tenant_id).join(turns, turns.c.id == ResponseRow.id)

    def delete(self, tenant_id: str, response_id: str) -> bool:
        """Delete a turn; False when there was none."""
        with self._db.write() as session:
            ids = (
                self._rows(tenant_id)
                .where(ResponseRow.id == response_id)
                .with_only_columns(ResponseRow.id)
            )
            if session.scalar(ids) is None:
                return False
            session.execute(delete(ResponseRow).where(ResponseRow.id == response_id))
        self._db.scrub()
        return True

    def _rows(self, tenant_id: str) -> Select[*tuple[Any, ...]]:
        query = (
            select(
                ResponseRow.id,
                ResponseRow.previous_id,
                ResponseRow.sealed,
                SessionRow.id.label("session_pk"),
                SessionRow.sealed_id,
                SessionRow.wrapped_key,
            )
            .join(SessionRow, SessionRow.id == ResponseRow.session_pk)
            .where(SessionRow.tenant_id == tenant_id)
        )
        if self._ttl is not None:
            query = query.where(SessionRow.last_used_at >= time.time() - self._ttl)
        return query


def _no_response() -> NotFound:
    return NotFound("There is no such response.")


def _unwrap(key: DataKey, tenant_id: str, session_pk: str, wrapped: bytes) -> DataKey:
    return key.unwrap(wrapped, tenant_id, "sessions", session_pk, "key")


def _place(tenant_id: str, response_id: str) -> tuple[str, str, str]:
    return tenant_id, "responses", response_id


def _read(key: DataKey, tenant_id: str, row: Row[*tuple[Any, ...]]) -> StoredResponse:
    session_id = key.open(row.sealed_id, tenant_id, "sessions", row.session_pk, "id").decode()
    own = _unwrap(key, tenant_id, row.session_pk, row.wrapped_key)
    content = json.loads(own.open(row.sealed, *_place(tenant_id, row.id)))
    return StoredResponse(row.id, session_id, row.previous_id, content)
