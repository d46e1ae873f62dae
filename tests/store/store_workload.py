"""A small but real use of sessions, run by threads and by processes of the tests.

As a program, ``python store_workload.py URL WORKER COUNT`` draws for COUNT entities of session "s",
which all workers share, under a budget of 10, and prints how often it was refused.
"""

import sys
from collections.abc import Callable
from uuid import uuid4

from privacy.accounting import Charge
from store.crypto import Keyring
from store.database import Database
from store.sessions import Change, Entry, SessionStore, Snapshot

MASTER = bytes(range(32))
BUDGET = 10.0


class BudgetSpent(Exception):
    """What a policy raises."""


def entry(name: str, substitute: str, fine_type: str = "person.family") -> Entry:
    return Entry(fine_type, name.casefold(), name, substitute, 7, {"case": "title"}, "PERSON", 0.5)


def charge(name: str, epsilon: float = 0.5, delta: float = 0.0) -> Charge:
    return Charge("person.family", "exponential", "angular", epsilon, delta, f"hmac-{name}")


def draw(name: str, epsilon: float = 0.5, budget: float = BUDGET) -> Callable[[Snapshot], Change]:
    """Plan: one substitute for one name, unless it has one or the budget is spent."""

    def plan(snapshot: Snapshot) -> Change:
        if snapshot.find("person.family", name.casefold()):
            return Change()
        if snapshot.spent_epsilon + epsilon > budget + 1e-9:
            raise BudgetSpent
        made = f"Sub{uuid4().hex}"
        assert made.casefold() not in snapshot.substitutes
        return Change([entry(name, made)], [charge(name, epsilon)])

    return plan


def main() -> None:
    url, worker, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    db = Database(url, Keyring(MASTER), busy_timeout=30)
    sessions = SessionStore(db)
    sessions.open("acme", "s", "p1")
    print("ready", flush=True)
    sys.stdin.readline()
    refused = 0
    for number in range(count):
        try:
            sessions.apply("acme", "s", f"{worker}-{number}", draw(f"Name{number}"))
        except BudgetSpent:
            refused += 1
    print(refused, flush=True)
    db.close()


if __name__ == "__main__":
    main()
