"""Tenants and their data keys."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from store.crypto import DataKey, Keyring, wrong_key
from store.errors import InvalidInput, StoreConflict, UnknownTenant
from store.models import (
    ApiKeyRow,
    FileRecord,
    FineTuningJobRow,
    SessionRow,
    TenantRow,
    TrainingDataRow,
    TunedModelRow,
    VectorStoreRecord,
    new_id,
)

if TYPE_CHECKING:
    from store.database import Database

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CACHED: Final = 4096


class TenantKeys:
    """Unwraps the data keys of tenants and remembers them, in memory only.

    A remembered key is used only while the database names the same key for the tenant, so a tenant
    that another process forgot and made anew is never written under the dead key.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._known: OrderedDict[str, tuple[str, DataKey]] = OrderedDict()
        self._lock = Lock()

    def get(self, session: Session, tenant_id: str) -> DataKey:
        """Return the tenant's key; reads one row by primary key.

        Raises:
            UnknownTenant: There is no such tenant (any more).
            MasterKeyError: Its key is wrapped by a master key that the keyring lacks.
        """
        key_id = session.scalar(select(TenantRow.key_id).where(TenantRow.id == tenant_id))
        if key_id is None:
            self.drop(tenant_id)
            raise unknown_tenant()
        known = self.remembered(tenant_id)
        if known is not None and known[0] == key_id:
            return known[1]
        row = session.execute(
            select(TenantRow.key_id, TenantRow.master_key_id, TenantRow.wrapped_key).where(
                TenantRow.id == tenant_id
            )
        ).one()
        key = self._keyring.unwrap(row.master_key_id, row.wrapped_key, *_place(tenant_id))
        with self._lock:
            self._known[tenant_id] = (row.key_id, key)
            while len(self._known) > _CACHED:
                self._known.popitem(last=False)
        return key

    def remembered(self, tenant_id: str) -> tuple[str, DataKey] | None:
        """Return (key id, key) if it was unwrapped before; it may be out of date."""
        with self._lock:
            return self._known.get(tenant_id)

    def drop(self, tenant_id: str) -> None:
        """Forget a remembered key."""
        with self._lock:
            self._known.pop(tenant_id, None)

    def check(self, session: Session) -> None:
        """Raise MasterKeyError unless every tenant's key can be unwrapped with this keyring."""
        for needed in session.scalars(select(TenantRow.master_key_id).distinct()):
            if needed not in self._keyring.known_ids:
                raise wrong_key(needed, self._keyring.current_id)


@dataclass(frozen=True)
class Tenant:
    """A tenant; ``created_at`` in seconds since the epoch, UTC."""

    id: str
    name: str
    created_at: float
    master_key_id: str


class TenantStore:
    """Creates, lists and forgets tenants, and rotates the master key."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def create(self, tenant_id: str, name: str = "") -> Tenant:
        """Make a tenant with a new data key.

        Args:
            tenant_id: 1 to 64 letters, digits, dots, dashes, underscores.  Stored in the clear.
            name: Shown to operators.  Stored in the clear.

        Raises:
            InvalidInput: Malformed id.
            StoreConflict: The id is taken.
        """
        if not _ID.fullmatch(tenant_id):
            raise InvalidInput(
                "A tenant id has 1 to 64 letters, digits, dots, dashes, underscores."
            )
        master_key_id, blob = self._db.keyring.wrap(DataKey.generate(), *_place(tenant_id))
        row = TenantRow(
            id=tenant_id,
            name=name[:200],
            key_id=new_id("dk_"),
            master_key_id=master_key_id,
            wrapped_key=blob,
            created_at=time.time(),
        )
        with self._db.write() as session:
            session.add(row)
        return _tenant(row)

    def ensure(self, tenant_id: str, name: str = "") -> Tenant:
        """Return the tenant, made first if it is new; safe from several processes."""
        found = self.get(tenant_id)
        if found is not None:
            return found
        try:
            return self.create(tenant_id, name)
        except StoreConflict:
            found = self.get(tenant_id)
            if found is None:
                raise
            return found

    def get(self, tenant_id: str) -> Tenant | None:
        """Return the tenant, or None."""
        with self._db.read() as session:
            row = session.get(TenantRow, tenant_id)
            return None if row is None else _tenant(row)

    def list(self) -> list[Tenant]:
        """Return all tenants by id."""
        with self._db.read() as session:
            return [_tenant(r) for r in session.scalars(select(TenantRow).order_by(TenantRow.id))]

    def entity_hasher(self, tenant_id: str) -> Callable[[str, str], str]:
        """Return the function (fine type, key) -> 64 hex digits that names entities in the ledger.

        It is HMAC-SHA256 under a key of the tenant: equal for the same entity in every session of
        the tenant, unrelated between tenants.

        Raises:
            UnknownTenant: There is no such tenant.
        """
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
        return lambda fine_type, name: key.blind("entity/" + fine_type, name).hex()

    def forget(self, tenant_id: str) -> bool:
        """Destroy the tenant's key and rows; its ledger rows stay, and name nobody any more.

        Returns False when there was no such tenant.
        """
        with self._db.write() as session:
            row = session.get(TenantRow, tenant_id, with_for_update=True)
            if row is None:
                return False
            for table in (
                VectorStoreRecord,
                TunedModelRow,
                FineTuningJobRow,
                TrainingDataRow,
                FileRecord,
                SessionRow,
                ApiKeyRow,
            ):
                session.execute(delete(table).where(table.tenant_id == tenant_id))
            session.delete(row)
        self._db.tenants.drop(tenant_id)
        self._db.scrub()
        return True

    def rotate_master_key(self) -> int:
        """Wrap every tenant key under the keyring's current master key; returns how many changed.

        Online: data keys stay the same, so nothing else is rewritten and no service stops.  The
        old key must be in the ring as a previous one, in every process, until this has run.

        Raises:
            MasterKeyError: A tenant needs a master key that the ring lacks; nothing was changed.
        """
        changed = 0
        with self._db.write() as session:
            rows = session.execute(
                select(TenantRow.id, TenantRow.master_key_id, TenantRow.wrapped_key)
                .where(TenantRow.master_key_id != self._db.keyring.current_id)
                .with_for_update()
            ).all()
            for row in rows:
                key = self._db.keyring.unwrap(row.master_key_id, row.wrapped_key, *_place(row.id))
                master_key_id, blob = self._db.keyring.wrap(key, *_place(row.id))
                session.execute(
                    update(TenantRow)
                    .where(TenantRow.id == row.id)
                    .values(master_key_id=master_key_id, wrapped_key=blob)
                )
                changed += 1
        self._db.scrub()
        return changed


def unknown_tenant() -> UnknownTenant:
    """Return the error for a tenant that does not exist."""
    return UnknownTenant("There is no such tenant. Create it first, or use a key of another one.")


def lock_tenant(session: Session, tenant_id: str) -> None:
    """Let other transactions that lock this tenant wait for this one.  Raises UnknownTenant."""
    query = select(TenantRow.id).where(TenantRow.id == tenant_id)
    if session.scalar(query.with_for_update(key_share=True)) is None:
        raise unknown_tenant()


def _place(tenant_id: str) -> tuple[str, str, str]:
    return tenant_id, "tenants", tenant_id


def _tenant(row: TenantRow) -> Tenant:
    return Tenant(row.id, row.name, row.created_at, row.master_key_id)
