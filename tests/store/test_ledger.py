import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import insert
from store_workload import charge

from privacy.accounting import totals
from store.database import Database
from store.errors import UnknownTenant
from store.ledger import Ledger, Spent, utc
from store.models import LedgerEntryRow
from store.sessions import Change, SessionStore


@pytest.fixture
def filled(db: Database) -> Ledger:
    sessions = SessionStore(db)
    for session_id, charges in {
        "one": [charge("varga", 1.0, 1e-6), charge("brandt", 2.0)],
        "two": [charge("varga", 4.0, 2e-6)],
    }.items():
        sessions.open("acme", session_id, "p1")
        sessions.apply("acme", session_id, f"r-{session_id}", lambda _, c=charges: Change([], c))
    return Ledger(db)


def test_totals_by_session_day_and_entity(filled: Ledger) -> None:
    assert filled.session_total("acme", "one") == Spent(3.0, 1e-6, 2)
    assert filled.session_total("acme", "never") == Spent()
    today = datetime.now(UTC).date()
    assert filled.tenant_day("acme").epsilon == 7.0
    assert filled.tenant_day("acme", today - timedelta(days=1)) == Spent()
    assert filled.tenant_day("other") == Spent()
    sums = filled.entity_totals("acme", ["hmac-varga", "hmac-unknown"])
    assert sums["hmac-varga"].epsilon == 5.0 and sums["hmac-varga"].charges == 2
    assert sums["hmac-unknown"] == Spent()
    dearest = filled.entities("acme")
    assert [(e.entity_hmac, e.spent.epsilon, e.sessions) for e in dearest] == [
        ("hmac-varga", 5.0, 2),
        ("hmac-brandt", 2.0, 1),
    ]
    assert filled.entities("acme", limit=1) == dearest[:1]


def test_rows_come_in_order_and_in_pages(filled: Ledger) -> None:
    rows = filled.rows("acme")
    assert [row.epsilon for row in rows] == [1.0, 2.0, 4.0]
    assert filled.rows("acme", after=rows[0].id, limit=1) == rows[1:2]
    assert [row.request_id for row in filled.rows("acme", "two")] == ["r-two"]
    assert rows[0].session_ref == rows[1].session_ref != rows[2].session_ref
    assert abs(utc(rows[0].created_at).timestamp() - time.time()) < 60


def test_accounts_of_another_unit_are_never_added(filled: Ledger) -> None:
    filled.append("acme", "dpsgd", "job-1", [charge("run", 8.0, 1e-5)])
    filled.append("acme", "ppft", "r-9", [charge("slot", 2.0)], session_id="one")
    assert filled.session_total("acme", "one").epsilon == 3.0
    assert filled.session_total("acme", "one", "ppft").epsilon == 2.0
    assert filled.tenant_day("acme").epsilon == 7.0
    assert filled.tenant_day("acme", account="dpsgd") == Spent(8.0, 1e-5, 1)
    assert [row.account for row in filled.rows("acme", accounts=["dpsgd"])] == ["dpsgd"]
    with pytest.raises(UnknownTenant):
        filled.append("nobody", "ppft", "r", [charge("x")])


def test_days_are_utc_days(db: Database) -> None:
    day = (datetime.now(UTC).date() - date(1970, 1, 1)).days
    row = {
        "tenant_id": "acme",
        "request_id": "r",
        "account": "entity",
        "fine_type": "org",
        "mechanism": "exponential",
        "metric": "angular",
        "delta": 0.0,
        "entity_hmac": "h",
        "created_at": 0.0,
    }
    with db.write() as session:
        session.execute(
            insert(LedgerEntryRow),
            [{**row, "day": day - back, "epsilon": 1.0 + back} for back in (0, 1, 1, 40)],
        )
    found = Ledger(db).days("acme", last=30)
    today = datetime.now(UTC).date()
    assert found == {today - timedelta(days=1): Spent(4.0, 0.0, 2), today: Spent(1.0, 0.0, 1)}
    assert list(found) == sorted(found)
    assert Ledger(db).tenant_day("acme", today - timedelta(days=40)).epsilon == 41.0


def test_many_entities_are_asked_for_at_once(db: Database) -> None:
    ledger = Ledger(db)
    ledger.append("acme", "entity", "r", [charge(str(n), 1.0) for n in range(1200)])
    sums = ledger.entity_totals("acme", [f"hmac-{n}" for n in range(1300)])
    assert sum(spent.epsilon for spent in sums.values()) == 1200.0 and len(sums) == 1300


def test_charges_per_day_of_shift_are_an_account_of_their_own(db: Database) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    charges = [charge("a", 1.0), replace(charge("shift", 0.25), metric="days")]
    after = sessions.apply("acme", "s", "r", lambda _: Change([], charges))
    cold = SessionStore(db).get("acme", "s")
    assert cold is not None and cold.spent_epsilon == after.spent_epsilon == 1.0
    Ledger(db).append("acme", "ppft", "r", [charge("slot", 9.0)], session_id="s")
    rows = sessions.ledger("acme", "s")
    assert [row.account for row in rows] == ["entity", "days"]
    assert [row.charge for row in rows] == charges
    total = totals([row.charge for row in rows])
    assert (total.basic.epsilon, total.days) == (1.0, 0.25)
