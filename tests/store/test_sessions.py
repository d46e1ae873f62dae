import math
import os
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import event, select, text
from store_workload import BudgetSpent, charge, draw, entry

from store.database import Database
from store.errors import NotFound, StoreConflict, StoreError, UnknownTenant
from store.ledger import Ledger
from store.models import SessionRow
from store.sessions import Change, SessionStore, Snapshot

ROOT = Path(__file__).parents[2]
WORKLOAD = Path(__file__).with_name("store_workload.py")


def fill(sessions: SessionStore, *names: str, session_id: str = "s") -> Snapshot:
    snapshot = sessions.open("acme", session_id, "p1")
    for name in names:
        snapshot = sessions.apply("acme", session_id, "req", draw(name))
    return snapshot


def test_open_creates_once_and_apply_stores_entries_charges_and_state(db: Database) -> None:
    sessions = SessionStore(db)
    first = sessions.open("acme", "s", "p1")
    assert (first.version, first.entries, first.spent_epsilon, first.policy) == (1, (), 0.0, "p1")

    wanted = [entry("Várga", "Novak"), entry("Ödön", "Ada", "person.given")]
    after = sessions.apply(
        "acme", "s", "r1", lambda _: Change(wanted, [charge("a"), charge("b", 1.5, 1e-6)], {"d": 3})
    )
    assert after.version == 2
    assert after.entries == tuple(wanted)
    assert after.spent_epsilon == 2.0 and after.spent_delta == 1e-6
    assert after.state == {"d": 3}

    cold = SessionStore(db).open("acme", "s", "p1")
    assert cold.entries == tuple(wanted)
    assert (cold.state, cold.spent_epsilon, cold.version) == ({"d": 3}, 2.0, 2)
    rows = sessions.ledger("acme", "s")
    assert [(r.request_id, r.entity_hmac, r.epsilon) for r in rows] == [
        ("r1", "hmac-a", 0.5),
        ("r1", "hmac-b", 1.5),
    ]


def test_repeating_a_request_draws_and_charges_nothing(db: Database) -> None:
    sessions = SessionStore(db)
    before = fill(sessions, "Varga")
    again = sessions.apply("acme", "s", "retry", draw("Varga"))
    assert again.version == before.version and again.entries == before.entries
    assert len(sessions.ledger("acme", "s")) == 1


def test_what_the_plan_raises_is_passed_on_and_costs_nothing(db: Database) -> None:
    sessions = SessionStore(db)
    before = fill(sessions, "Varga")

    def fails(snapshot: Snapshot) -> Change:
        raise BudgetSpent

    with pytest.raises(BudgetSpent):
        sessions.apply("acme", "s", "r", fails)
    assert SessionStore(db).get("acme", "s") == before
    assert len(sessions.ledger("acme", "s")) == 1


@pytest.mark.parametrize(
    "bad",
    [
        entry("Varga", "Another"),  # the same key again
        entry("Brandt", "NOVAK"),  # the same substitute in another case
    ],
)
def test_a_conflict_rolls_back_entries_and_charges_and_quotes_nothing(
    db: Database, bad: object
) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    sessions.apply("acme", "s", "r1", lambda _: Change([entry("Varga", "Novak")], [charge("a")]))
    good = entry("Lund", "Moser")
    with pytest.raises(StoreConflict) as caught:
        sessions.apply("acme", "s", "r2", lambda _: Change([good, bad], [charge("b")]))
    logged = "".join(traceback.format_exception(caught.value))
    assert "IntegrityError" not in logged
    for word in ("Another", "NOVAK", "novak", "brandt"):
        assert word not in str(caught.value) + logged
    snapshot = SessionStore(db).get("acme", "s")
    assert snapshot is not None and len(snapshot.entries) == 1
    assert len(sessions.ledger("acme", "s")) == 1


def test_an_infinite_charge_is_kept_as_such(db: Database) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    sessions.apply("acme", "s", "r", lambda _: Change([], [charge("a", math.inf)]))
    cold = SessionStore(db).get("acme", "s")
    assert cold is not None and cold.spent_epsilon == math.inf


def test_a_cached_open_is_one_select(db: Database) -> None:
    sessions = SessionStore(db)
    before = fill(sessions, "Varga")
    statements: list[str] = []
    event.listen(
        db.engine, "before_cursor_execute", lambda *args: statements.append(args[2]), named=False
    )
    assert sessions.open("acme", "s", "p1") is before
    assert len([s for s in statements if not s.startswith("BEGIN")]) == 1


def test_caches_of_two_stores_never_show_an_old_version(db: Database) -> None:
    one, two = SessionStore(db), SessionStore(db)
    fill(one, "Varga")
    assert len(two.open("acme", "s", "p1").entries) == 1
    fill(one, "Brandt")
    assert len(two.open("acme", "s", "p1").entries) == 2
    seen: list[int] = []

    def plan(snapshot: Snapshot) -> Change:
        seen.append(len(snapshot.entries))
        return Change()

    fill(one, "Lund")
    two.apply("acme", "s", "r", plan)
    assert seen == [3]


def test_sessions_and_tenants_do_not_see_each_other(db: Database) -> None:
    sessions = SessionStore(db)
    fill(sessions, "Varga")
    assert sessions.get("other", "s") is None
    assert sessions.open("other", "s", "p1").entries == ()
    assert sessions.open("acme", "s2", "p1").entries == ()
    assert sessions.forget("other", "nothing") is False
    assert [info.session_id for info in sessions.list("other")] == ["s"]
    assert sessions.ledger("other", "s") == []


def test_unknown_tenants_and_sessions_are_clear_errors(db: Database) -> None:
    sessions = SessionStore(db)
    with pytest.raises(UnknownTenant):
        sessions.open("nobody", "s", "p1")
    with pytest.raises(NotFound):
        sessions.apply("acme", "never", "r", lambda _: Change())
    for bad in ("", "x" * 129):
        with pytest.raises(ValueError, match="128"):
            sessions.open("acme", bad, "p1")


def test_a_new_policy_is_recorded(db: Database) -> None:
    sessions = SessionStore(db)
    fill(sessions, "Varga")
    assert sessions.open("acme", "s", "p2").policy == "p2"
    assert SessionStore(db).open("acme", "s", "p2").policy == "p2"
    assert len(sessions.open("acme", "s", "p2").entries) == 1


def test_forgetting_destroys_entries_and_keeps_the_charges(db: Database) -> None:
    sessions = SessionStore(db)
    fill(sessions, "Varga", "Brandt")
    assert sessions.forget("acme", "s") is True
    assert sessions.get("acme", "s") is None
    with db.read() as raw:
        assert raw.execute(text("SELECT count(*) FROM session_entries")).scalar() == 0
        assert raw.execute(text("SELECT count(*) FROM sessions")).scalar() == 0
    assert len(sessions.ledger("acme", "s")) == 2
    with pytest.raises(NotFound):
        sessions.apply("acme", "s", "r", draw("Varga"))
    # Nothing is refunded: the same id starts from what it has spent.
    again = sessions.open("acme", "s", "p1")
    assert again.entries == () and again.spent_epsilon == 1.0


def test_a_session_past_its_time_to_live_starts_anew(db: Database) -> None:
    sessions = SessionStore(db, ttl=1000)
    fill(sessions, "Varga")
    with db.write() as raw:
        raw.execute(text("UPDATE sessions SET last_used_at = last_used_at - 2000"))
    assert sessions.get("acme", "s") is None
    assert sessions.open("acme", "s", "p1").entries == ()


def test_expire_forgets_only_what_is_unused_for_long(db: Database) -> None:
    sessions = SessionStore(db, ttl=1000)
    fill(sessions, "Varga", session_id="old")
    with db.write() as raw:
        raw.execute(text("UPDATE sessions SET last_used_at = last_used_at - 2000"))
    fill(sessions, "Varga", session_id="new")
    assert sessions.expire(tenant_id="other") == 0
    assert sessions.expire() == 1
    assert [info.session_id for info in sessions.list("acme")] == ["new"]
    assert SessionStore(db, ttl=None).expire() == 0


def test_the_cap_forgets_the_session_unused_for_longest(db: Database) -> None:
    sessions = SessionStore(db, max_sessions=3)
    for number in range(5):
        sessions.open("acme", f"s{number}", "p1")
        time.sleep(0.002)
    assert [info.session_id for info in sessions.list("acme")] == ["s4", "s3", "s2"]
    sessions.open("other", "mine", "p1")
    assert len(sessions.list("acme")) == 3


def test_use_is_noted_now_and_then_only(db: Database) -> None:
    sessions = SessionStore(db)
    fill(sessions, "Varga")
    with db.write() as raw:
        raw.execute(text("UPDATE sessions SET last_used_at = last_used_at - 61"))
    opened = sessions.open("acme", "s", "p1")
    assert time.time() - opened.last_used_at < 30
    with db.read() as raw:
        stored = raw.scalar(select(SessionRow.last_used_at))
    assert stored == opened.last_used_at


def test_threads_of_one_session_neither_overspend_nor_draw_twice(db: Database) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    barrier = threading.Barrier(8)

    def work(worker: int) -> int:
        barrier.wait()
        refused = 0
        for number in range(25):
            try:
                sessions.apply("acme", "s", f"{worker}-{number}", draw(f"Name{number}"))
            except BudgetSpent:
                refused += 1
        return refused

    with ThreadPoolExecutor(8) as pool:
        refused = list(pool.map(work, range(8)))
    check_shared_session(db, refused, workers=8)


def test_processes_of_one_session_neither_overspend_nor_draw_twice(db: Database, url: str) -> None:
    command = [sys.executable, str(WORKLOAD), url]
    workers = [
        subprocess.Popen(
            [*command, str(number), "25"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    refused = [int(worker.communicate(timeout=60)[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    check_shared_session(db, refused, workers=3)


def check_shared_session(db: Database, refused: list[int], workers: int) -> None:
    """The budget of 10 buys 20 of the 25 names; every worker is refused the other 5."""
    snapshot = SessionStore(db).get("acme", "s")
    assert snapshot is not None
    assert len({e.key for e in snapshot.entries}) == len(snapshot.entries) == 20
    assert len(snapshot.substitutes) == 20
    assert snapshot.spent_epsilon == 10.0
    assert refused == [5] * workers
    charged = [row.entity_hmac for row in Ledger(db).rows("acme", "s")]
    assert len(charged) == len(set(charged)) == 20
    assert snapshot.version == 21


def test_threads_opening_one_new_session_make_one(db: Database) -> None:
    barrier = threading.Barrier(8)
    sessions = [SessionStore(db) for _ in range(8)]

    def work(store: SessionStore) -> Snapshot:
        barrier.wait()
        return store.open("acme", "fresh", "p1")

    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(work, sessions))
    assert len({snapshot.created_at for snapshot in opened}) == 1
    assert len(sessions[0].list("acme")) == 1


def test_a_tenant_budget_holds_over_sessions_that_race(db: Database) -> None:
    sessions = SessionStore(db)
    barrier = threading.Barrier(6)

    def work(worker: int) -> int:
        name = f"s{worker}"
        sessions.open("acme", name, "p1")
        barrier.wait()
        granted = 0
        for number in range(5):

            def plan(snapshot: Snapshot, number: int = number) -> Change:
                assert snapshot.spending is not None
                if snapshot.spending.tenant_day().epsilon + 1.0 > 7.0:
                    return Change()
                return Change([entry(f"N{number}", f"S{number}")], [charge("one", 1.0)])

            granted += len(sessions.apply("acme", name, "r", plan).entries) == number + 1
        return granted

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert Ledger(db).tenant_day("acme").epsilon == 7.0
    assert Ledger(db).entity_totals("acme", ["hmac-one"])["hmac-one"].charges == 7


def test_budgets_are_readable_only_while_the_plan_runs(db: Database) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    kept: list[Snapshot] = []

    def plan(snapshot: Snapshot) -> Change:
        kept.append(snapshot)
        assert snapshot.spending is not None
        assert snapshot.spending.entities(["x"])["x"].epsilon == 0.0
        return Change()

    assert sessions.apply("acme", "s", "r", plan).spending is None
    assert kept[0].spending is not None
    with pytest.raises(RuntimeError):
        kept[0].spending.tenant_day()


def test_nothing_printed_of_a_session_shows_an_original(db: Database) -> None:
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    after = sessions.apply(
        "acme", "s", "r", lambda _: Change([entry("Varga", "Novak")], [], {"secret": "Brandt"})
    )
    shown = repr(after) + repr(after.entries)
    for word in ("Varga", "varga", "Novak", "Brandt"):
        assert word not in shown


def test_a_row_moved_to_another_session_does_not_open(db: Database) -> None:
    sessions = SessionStore(db)
    fill(sessions, "Varga", session_id="one")
    sessions.open("acme", "two", "p1")
    with db.write() as raw:
        target = raw.scalar(
            text("SELECT id FROM sessions WHERE id NOT IN (SELECT session_pk FROM session_entries)")
        )
        raw.execute(text("UPDATE session_entries SET session_pk = :pk"), {"pk": target})
    with pytest.raises(StoreError, match="cannot be decrypted"):
        SessionStore(db).get("acme", "two")
