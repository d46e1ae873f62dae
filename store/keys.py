"""API keys: made once, shown once, stored as SHA-256.

A key carries 256 random bits, so a fast hash is enough: there is no dictionary to try.
"""

import hashlib
import logging
import secrets
import time
from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, Literal, cast

from sqlalchemy import select, update

from store.errors import InvalidInput, NotFound, StoreUnavailable
from store.models import ApiKeyRow, TenantRow, new_id
from store.tenants import unknown_tenant

if TYPE_CHECKING:
    from store.database import Database

Role = Literal["client", "admin"]
PREFIX: Final = "pn-"
_SHOWN: Final = 8
_TOUCH_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ApiKey:
    """What is known of a key; times in seconds since the epoch, UTC."""

    id: str
    tenant_id: str
    role: Role
    name: str
    prefix: str
    created_at: float
    expires_at: float | None
    last_used_at: float | None
    revoked_at: float | None


class KeyStore:
    """Creates, checks, lists and revokes API keys.  Every process sees changes at once."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def create(
        self, role: Role, tenant_id: str, name: str = "", expires_at: float | None = None
    ) -> tuple[str, ApiKey]:
        """Make a key.  Returns (the key itself, never to be had again; its record).

        Raises:
            InvalidInput: Unknown role, or an expiry in the past.
            UnknownTenant: There is no such tenant.
        """
        if role not in ("client", "admin"):
            raise InvalidInput("The role of a key is 'client' or 'admin'.")
        now = time.time()
        if expires_at is not None and expires_at <= now:
            raise InvalidInput("The key would have expired already.")
        plain = PREFIX + secrets.token_urlsafe(32)
        row = ApiKeyRow(
            id=new_id("key_"),
            tenant_id=tenant_id,
            role=role,
            name=name[:200],
            prefix=plain[:_SHOWN],
            digest=_digest(plain),
            created_at=now,
            expires_at=expires_at,
        )
        with self._db.write() as session:
            if session.get(TenantRow, tenant_id) is None:
                raise unknown_tenant()
            session.add(row)
        return plain, _record(row)

    def verify(self, plain: str) -> ApiKey | None:
        """Return the record of a valid key; None if unknown, revoked or expired.

        ``last_used_at`` is brought up to date at most once a minute.
        """
        if not plain.startswith(PREFIX) or len(plain) > 128 or not plain.isascii():
            return None
        digest, now = _digest(plain), time.time()
        with self._db.read() as session:
            row = session.scalar(select(ApiKeyRow).where(ApiKeyRow.digest == digest))
        if row is None or not compare_digest(row.digest, digest) or row.revoked_at is not None:
            return None
        if row.expires_at is not None and row.expires_at <= now:
            return None
        if row.last_used_at is None or now - row.last_used_at > _TOUCH_SECONDS:
            self._touch(row, now)
        return _record(row)

    def _touch(self, row: ApiKeyRow, now: float) -> None:
        try:
            with self._db.write() as session:
                session.execute(
                    update(ApiKeyRow).where(ApiKeyRow.id == row.id).values(last_used_at=now)
                )
        except StoreUnavailable:
            # A valid key stays valid; whatever the request writes next will say what is wrong.
            _log.warning("the time of last use of an API key could not be stored")
        else:
            row.last_used_at = now

    def list(self, tenant_id: str | None = None) -> list[ApiKey]:
        """Return the keys of a tenant, or all, oldest first, revoked and expired ones included."""
        query = select(ApiKeyRow).order_by(ApiKeyRow.created_at, ApiKeyRow.id)
        if tenant_id is not None:
            query = query.where(ApiKeyRow.tenant_id == tenant_id)
        with self._db.read() as session:
            return [_record(row) for row in session.scalars(query)]

    def revoke(self, key_id: str, tenant_id: str | None = None) -> ApiKey:
        """Make a key invalid at once; revoking twice keeps the first time.

        Raises:
            NotFound: No such key (of that tenant, when one is given).
        """
        with self._db.write() as session:
            row = session.get(ApiKeyRow, key_id, with_for_update=True)
            if row is None or tenant_id not in (None, row.tenant_id):
                raise NotFound("There is no such API key.")
            if row.revoked_at is None:
                row.revoked_at = time.time()
        return _record(row)


def _digest(plain: str) -> bytes:
    return hashlib.sha256(plain.encode()).digest()


def _record(row: ApiKeyRow) -> ApiKey:
    return ApiKey(
        row.id,
        row.tenant_id,
        cast(Role, row.role),
        row.name,
        row.prefix,
        row.created_at,
        row.expires_at,
        row.last_used_at,
        row.revoked_at,
    )
