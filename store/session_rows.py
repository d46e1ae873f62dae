"""How sessions stand in the database: what is sealed where, and the statements that do it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, insert, select
from sqlalchemy.orm import Session

from privacy.substitution.entry import Entry
from store.crypto import DataKey
from store.ledger import session_sum
from store.models import EntryRow, SessionRow
from store.snapshots import Snapshot


@dataclass(frozen=True)
class Head:
    """The row of a session without its entries."""

    pk: str
    version: int
    policy: str
    created_at: float
    last_used_at: float
    wrapped_key: bytes
    sealed_id: bytes
    sealed_state: bytes


def session_ref(tenant_key: DataKey, session_id: str) -> str:
    """Return the blind index, 64 hex digits, that a session id is stored and billed under."""
    return tenant_key.blind("session", session_id).hex()


def heads() -> Select[*tuple[Any, ...]]:
    """Return the query whose rows `head` reads."""
    return select(
        SessionRow.id,
        SessionRow.version,
        SessionRow.policy,
        SessionRow.created_at,
        SessionRow.last_used_at,
        SessionRow.wrapped_key,
        SessionRow.sealed_id,
        SessionRow.sealed_state,
    )


def head(row: Row[*tuple[Any, ...]]) -> Head:
    """Read a row of `heads`."""
    return Head(*row)


def insert_session(
    session: Session, tenant_key: DataKey, tenant_id: str, session_id: str, pk: str, **values: Any
) -> DataKey:
    """Insert a session with a new data key; ``values`` are policy and times."""
    data_key = DataKey.generate()
    session.execute(
        insert(SessionRow).values(
            id=pk,
            tenant_id=tenant_id,
            ref=session_ref(tenant_key, session_id),
            sealed_id=tenant_key.seal(session_id.encode(), tenant_id, "sessions", pk, "id"),
            wrapped_key=tenant_key.wrap(data_key, tenant_id, "sessions", pk, "key"),
            version=1,
            sealed_state=seal_state(data_key, tenant_id, pk, {}),
            **values,
        )
    )
    return data_key


def session_key(tenant_key: DataKey, tenant_id: str, row: Head) -> DataKey:
    """Unwrap the session's own key."""
    return tenant_key.unwrap(row.wrapped_key, tenant_id, "sessions", row.pk, "key")


def seal_state(key: DataKey, tenant_id: str, pk: str, state: Mapping[str, Any]) -> bytes:
    """Encrypt the state.  Raises TypeError when it is no JSON."""
    return key.seal(json.dumps(dict(state)).encode(), tenant_id, "sessions", pk, "state")


def load(
    session: Session, key: DataKey, tenant_id: str, session_id: str, ref: str, row: Head
) -> Snapshot:
    """Read and decrypt the entries, and sum the ledger, within the caller's transaction."""
    found = session.execute(
        select(EntryRow.ordinal, EntryRow.fine_type, EntryRow.sealed)
        .where(EntryRow.session_pk == row.pk)
        .order_by(EntryRow.ordinal)
    )
    entries = tuple(
        _read_entry(fine_type, key.open(sealed, *_place(tenant_id, row.pk, ordinal)))
        for ordinal, fine_type, sealed in found
    )
    state = json.loads(key.open(row.sealed_state, tenant_id, "sessions", row.pk, "state"))
    spent = session_sum(session, tenant_id, ref)
    return Snapshot(
        session_id=session_id,
        tenant_id=tenant_id,
        version=row.version,
        entries=entries,
        spent_epsilon=spent.epsilon,
        spent_delta=spent.delta,
        policy=row.policy,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        state=state,
    )


def insert_entries(
    session: Session, key: DataKey, tenant_id: str, pk: str, first: int, entries: Sequence[Entry]
) -> None:
    """Insert entries as ordinals ``first``, ``first + 1``, ..."""
    values = [
        {
            "session_pk": pk,
            "ordinal": ordinal,
            "fine_type": entry.fine_type,
            "key_index": key.blind("key/" + entry.fine_type, entry.key),
            "substitute_index": _substitute_index(key, entry),
            "sealed": key.seal(_write_entry(entry), *_place(tenant_id, pk, ordinal)),
        }
        for ordinal, entry in enumerate(entries, first)
    ]
    if values:
        session.execute(insert(EntryRow), values)


def _substitute_index(key: DataKey, entry: Entry) -> bytes:
    """Drawn substitutes are unique in a session; derived ones and shared markers need not be."""
    if entry.derived:
        return key.blind("derived/" + entry.fine_type, entry.key)
    return key.blind("substitute", entry.substitute.casefold())


def _place(tenant_id: str, pk: str, ordinal: int) -> Iterable[str]:
    return tenant_id, "session_entries", pk, str(ordinal)


def _write_entry(entry: Entry) -> bytes:
    fields = (
        entry.key,
        entry.original,
        entry.substitute,
        entry.pool_index,
        dict(entry.detail),
        entry.type,
        entry.epsilon,
        entry.delta,
    )
    return json.dumps(fields).encode()


def _read_entry(fine_type: str, plain: bytes) -> Entry:
    return Entry(fine_type, *json.loads(plain))
