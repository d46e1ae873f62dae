import hashlib
import time

import pytest
from sqlalchemy import select, text
from store_workload import draw

from store.database import Database
from store.errors import NotFound, StoreConflict, UnknownTenant
from store.files import FileStore
from store.keys import KeyStore
from store.ledger import Ledger
from store.models import ApiKeyRow
from store.sessions import SessionStore
from store.tenants import TenantStore


def test_a_key_is_shown_once_and_stored_as_a_hash(db: Database) -> None:
    keys = KeyStore(db)
    plain, record = keys.create("client", "acme", "laptop")
    assert plain.startswith("pn-") and len(plain) >= 3 + 43
    assert record.prefix == plain[:8] and plain not in repr(record)
    with db.read() as session:
        row = session.scalars(select(ApiKeyRow)).one()
    assert row.digest == hashlib.sha256(plain.encode()).digest()
    found = keys.verify(plain)
    assert found is not None
    assert (found.id, found.tenant_id, found.role, found.name) == (
        record.id,
        "acme",
        "client",
        "laptop",
    )


def test_keys_that_are_not_valid(db: Database) -> None:
    keys = KeyStore(db)
    plain, _ = keys.create("client", "acme")
    wrong = [plain[:-1], plain + "x", plain.upper(), plain[3:], "", "pn-", "pn-" + "é" * 43]
    for bad in [*wrong, " " + plain, "pn-" + "x" * 1000, "pn-\x00"]:
        assert keys.verify(bad) is None


def test_a_revoked_key_is_refused_at_once_by_every_process(db: Database, url: str) -> None:
    plain, record = KeyStore(db).create("admin", "acme")
    serving = KeyStore(Database(url, db.keyring))
    assert serving.verify(plain) is not None
    with pytest.raises(NotFound):
        KeyStore(db).revoke(record.id, "other")
    first = KeyStore(db).revoke(record.id, "acme")
    assert serving.verify(plain) is None
    assert KeyStore(db).revoke(record.id).revoked_at == first.revoked_at
    with pytest.raises(NotFound):
        KeyStore(db).revoke("key_none")
    serving._db.close()


def test_a_key_made_elsewhere_works_at_once(db: Database, url: str) -> None:
    serving, tool = KeyStore(db), Database(url, db.keyring)
    assert serving.verify("pn-nothing") is None
    plain, _ = KeyStore(tool).create("client", "other")
    tool.close()
    found = serving.verify(plain)
    assert found is not None and found.tenant_id == "other"


def test_an_expired_key_is_refused(db: Database) -> None:
    keys = KeyStore(db)
    plain, record = keys.create("client", "acme", expires_at=time.time() + 3600)
    assert keys.verify(plain) is not None
    with db.write() as session:
        session.execute(text("UPDATE api_keys SET expires_at = :t"), {"t": time.time() - 1})
    assert keys.verify(plain) is None
    with pytest.raises(ValueError, match="expired"):
        keys.create("client", "acme", expires_at=time.time() - 1)
    assert [key.id for key in keys.list("acme")] == [record.id]


def test_the_last_use_is_noted_at_most_once_a_minute(db: Database) -> None:
    keys = KeyStore(db)
    plain, record = keys.create("client", "acme")
    assert record.last_used_at is None
    first = keys.verify(plain)
    second = keys.verify(plain)
    assert first is not None and second is not None
    assert first.last_used_at == second.last_used_at == keys.list()[0].last_used_at
    with db.write() as session:
        session.execute(text("UPDATE api_keys SET last_used_at = last_used_at - 100"))
    third = keys.verify(plain)
    assert third is not None and third.last_used_at is not None
    assert third.last_used_at >= (first.last_used_at or 0)


def test_roles_and_tenants_are_checked(db: Database) -> None:
    keys = KeyStore(db)
    with pytest.raises(ValueError, match="role"):
        keys.create("root", "acme")  # type: ignore[arg-type]
    with pytest.raises(UnknownTenant):
        keys.create("client", "nobody")
    keys.create("client", "acme")
    keys.create("admin", "other")
    assert [key.tenant_id for key in keys.list()] == ["acme", "other"]
    assert [key.role for key in keys.list("other")] == ["admin"]


def test_tenants_are_made_once(db: Database) -> None:
    tenants = TenantStore(db)
    assert [tenant.id for tenant in tenants.list()] == ["acme", "other"]
    with pytest.raises(StoreConflict):
        tenants.create("acme")
    made = tenants.ensure("new", "New Ltd")
    assert tenants.ensure("new", "ignored") == made == tenants.get("new")
    assert tenants.get("nobody") is None
    for bad in ("", "a b", "-x", "x" * 65, "ä"):
        with pytest.raises(ValueError):
            tenants.create(bad)


def test_entity_hashes_are_stable_and_differ_between_tenants(db: Database, url: str) -> None:
    again = Database(url, db.keyring)
    one = TenantStore(db).entity_hasher("acme")
    assert one("org", "varga") == TenantStore(again).entity_hasher("acme")("org", "varga")
    assert len(one("org", "varga")) == 64
    assert one("org", "varga") != one("person.family", "varga")
    assert one("org", "varga") != TenantStore(db).entity_hasher("other")("org", "varga")
    with pytest.raises(UnknownTenant):
        TenantStore(db).entity_hasher("nobody")
    again.close()


def test_forgetting_a_tenant_leaves_only_its_ledger(db: Database, url: str) -> None:
    tenants, sessions, keys = TenantStore(db), SessionStore(db), KeyStore(db)
    elsewhere = Database(url, db.keyring)
    unaware = Database(url, db.keyring)  # sees nothing of the time between
    stale, blind = SessionStore(elsewhere), SessionStore(unaware)
    sessions.open("acme", "s", "p1")
    sessions.apply("acme", "s", "r", draw("Varga"))
    assert len(stale.open("acme", "s", "p1").entries) == 1
    assert len(blind.open("acme", "s", "p1").entries) == 1
    plain, _ = keys.create("client", "acme")
    FileStore(db).create("acme", "a.txt", "assistants", b"x")
    before = tenants.entity_hasher("acme")("org", "varga")

    assert tenants.forget("acme") is True
    assert tenants.forget("acme") is False
    assert keys.verify(plain) is None
    for store in (sessions, stale):
        with pytest.raises(UnknownTenant):
            store.open("acme", "s", "p1")
    assert len(Ledger(db).rows("acme")) == 1

    # A new tenant of the same name shares nothing with the old one, in any process.
    tenants.create("acme")
    for number, store in enumerate((blind, stale)):
        assert len(store.open("acme", "s", "p1").entries) == number
        store.apply("acme", "s", "r", draw(f"Varga{number}"))
    found = SessionStore(db).get("acme", "s")
    assert found is not None and [e.original for e in found.entries] == ["Varga0", "Varga1"]
    assert tenants.entity_hasher("acme")("org", "varga") != before
    elsewhere.close()
    unaware.close()
