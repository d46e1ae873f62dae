"""`penname keys`: works on the data folder, before or while a server runs."""

import time
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from gateway.bootstrap import open_database
from gateway.cli.console import CommandError, print_json
from gateway.settings import Settings
from store.errors import NotFound
from store.keys import KeyStore
from store.tenants import TenantStore

_DAY = 86_400.0


def create(
    settings: Settings, role: str, tenant: str, name: str, days: float | None, as_json: bool
) -> None:
    if role not in ("client", "admin"):
        raise CommandError("--role must be client or admin")
    db = open_database(settings)
    TenantStore(db).ensure(tenant)
    expires = None if days is None else time.time() + days * _DAY
    plain, record = KeyStore(db).create(
        "admin" if role == "admin" else "client", tenant, name, expires
    )
    db.close()
    if as_json:
        print_json({"key": plain, "id": record.id, "role": record.role, "tenant": tenant})
        return
    out = Console()
    out.print(plain, markup=False, highlight=False)
    Console(stderr=True).print("Keep it: it is shown only now and stored as a hash.", style="dim")


def show(settings: Settings, as_json: bool) -> None:
    db = open_database(settings)
    rows = [
        {
            "id": key.id,
            "prefix": key.prefix,
            "role": key.role,
            "tenant": key.tenant_id,
            "name": key.name,
            "created": datetime.fromtimestamp(key.created_at, UTC).isoformat(timespec="seconds"),
            "revoked": key.revoked_at is not None,
        }
        for key in KeyStore(db).list()
    ]
    db.close()
    if as_json:
        print_json(rows)
        return
    table = Table("id", "prefix", "role", "tenant", "name", "created", "revoked")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


def rotate(settings: Settings) -> None:
    db = open_database(settings)
    try:
        changed = TenantStore(db).rotate_master_key()
        current = db.keyring.current_id
    finally:
        db.close()
    Console().print(
        f"wrapped the keys of {changed} tenants under {current}; the earlier master keys can go",
        highlight=False,
    )


def revoke(settings: Settings, key_id: str) -> None:
    db = open_database(settings)
    try:
        KeyStore(db).revoke(key_id)
    except NotFound:
        raise CommandError(
            f"there is no key with the id {key_id}; 'penname keys list' shows them"
        ) from None
    finally:
        db.close()
    Console().print(f"revoked {key_id}", highlight=False)
