"""`penname keys`: works on the data folder, before or while a server runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from gateway.bootstrap import open_database
from gateway.cli.console import CommandError, print_json, print_uncut
from gateway.settings import Settings
from store.database import Database
from store.errors import NotFound
from store.keys import ApiKey, KeyStore, Role
from store.tenants import TenantStore

_DAY = 86_400.0


def create(
    settings: Settings, role: str, tenant: str, name: str, days: float | None, as_json: bool
) -> None:
    if role not in ("client", "admin"):
        raise CommandError("--role must be client or admin")
    expires = None if days is None else time.time() + days * _DAY
    if days is not None and not 0 < days <= 365_000:
        raise CommandError("--expires-days needs a number of days above 0")
    kind: Role = "admin" if role == "admin" else "client"
    with _open(settings, create=True) as db:
        TenantStore(db).ensure(tenant)
        plain, record = KeyStore(db).create(kind, tenant, name, expires)
    if as_json:
        print_json({"key": plain, "id": record.id, "role": record.role, "tenant": tenant})
        return
    Console().print(plain, markup=False, highlight=False, soft_wrap=True)
    where = "the same database"
    if not settings.database_url:
        where = f"the data folder {settings.data_dir.absolute()}"
    note = Console(stderr=True, style="dim", highlight=False, markup=False, soft_wrap=True)
    note.print("Keep it: it is shown only now and stored as a hash.")
    note.print(f"It opens a server that works on {where}.")


@contextmanager
def _open(settings: Settings, *, create: bool = False) -> Iterator[Database]:
    db = open_database(settings, create=create)
    try:
        yield db
    finally:
        db.close()


def show(settings: Settings, as_json: bool) -> None:
    with _open(settings) as db:
        rows = [_row(key, time.time()) for key in KeyStore(db).list()]
    if as_json:
        print_json(rows)
        return
    table = Table("id", "prefix", "role", "tenant", "name", "created", "expires", "status")
    for row in rows:
        days = {name: (row[name] or "")[:10] for name in ("created", "expires")}
        table.add_row(*(str(value) for value in (row | days).values()))
    print_uncut(table)


def _row(key: ApiKey, now: float) -> dict[str, Any]:
    return {
        "id": key.id,
        "prefix": key.prefix,
        "role": key.role,
        "tenant": key.tenant_id,
        "name": key.name,
        "created": _moment(key.created_at),
        "expires": None if key.expires_at is None else _moment(key.expires_at),
        "status": _status(key, now),
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _status(key: ApiKey, now: float) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and key.expires_at <= now else "active"


def rotate(settings: Settings) -> None:
    with _open(settings) as db:
        changed = TenantStore(db).rotate_master_key()
        current = db.keyring.current_id
    out = Console(highlight=False, soft_wrap=True)
    if changed:
        out.print(
            f"wrapped the keys of {changed} tenants under {current}; the earlier master keys can go"
        )
    else:
        out.print(f"nothing to rotate: every tenant's key is under {current} already")


def revoke(settings: Settings, key_id: str) -> None:
    with _open(settings) as db:
        store = KeyStore(db)
        found = _match(store.list(), key_id)
        try:
            store.revoke(found)
        except NotFound:
            raise CommandError(f"the key {found} is gone already") from None
    Console().print(f"revoked {found}", highlight=False)


def _match(keys: list[ApiKey], beginning: str) -> str:
    """Return the id that is meant: the whole one, or the only one that begins so."""
    ids = [key.id for key in keys if key.id.startswith(beginning)]
    if beginning in ids:
        return beginning
    if len(ids) == 1:
        return ids[0]
    many = f"{len(ids)} keys have ids that begin with" if ids else "there is no key with the id"
    raise CommandError(f"{many} {beginning}; 'penname keys list' shows them")
