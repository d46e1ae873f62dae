"""SIGKILL in the middle of writing, again and again, on one SQLite database."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import text
from store_databases import MASTER

from store.crypto import Keyring
from store.database import Database
from store.ledger import Ledger
from store.sessions import SessionStore

PROGRAM = """
import sys
from store.crypto import Keyring
from store.database import Database
from store.sessions import Change, SessionStore
from store_workload import charge, entry
db = Database(sys.argv[1], Keyring(bytes(range(32))))
sessions = SessionStore(db)
sessions.open("acme", "s", "p1")
number = int(sys.argv[2])
while True:
    names = [f"{number}-{part}" for part in range(20)]
    change = Change([entry(n, "S" + n) for n in names], [charge(n) for n in names], {"n": number})
    sessions.apply("acme", "s", f"r{number}", lambda _: change)
    print(number, flush=True)
    number += 1
"""


def test_a_killed_process_leaves_entries_and_charges_in_step(
    sqlite_db: Database, tmp_path: Path
) -> None:
    url = str(sqlite_db.engine.url)
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here.parents[1]}{os.pathsep}{here}"}
    confirmed = -1
    for round_number in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url, str((round_number + 1) * 10_000)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.03 + 0.017 * round_number)
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().split()
        assert process.returncode == -signal.SIGKILL
        confirmed = int(lines[-1]) if lines else (round_number + 1) * 10_000
        check(url, confirmed)
    assert confirmed >= 60_000


def check(url: str, confirmed: int) -> None:
    db = Database(url, Keyring(MASTER))
    db.upgrade()
    with db.read() as session:
        assert session.scalar(text("PRAGMA integrity_check")) == "ok"
    snapshot = SessionStore(db).get("acme", "s")
    assert snapshot is not None
    rows = Ledger(db).rows("acme", "s", limit=10**6)
    assert [f"hmac-{e.original}" for e in snapshot.entries] == [r.entity_hmac for r in rows]
    assert len(rows) % 20 == 0
    assert snapshot.version == 1 + len(rows) // 20
    assert snapshot.state["n"] in (confirmed, confirmed + 1)  # what was confirmed is there
    assert snapshot.spent_epsilon == len(rows) * 0.5
    db.close()
