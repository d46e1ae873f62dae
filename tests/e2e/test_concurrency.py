"""Many requests at once: nobody gets another's name, nobody spends what is not there."""

import gc
import itertools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from e2e_gateway import Gateway, running_gateway
from openai import PermissionDeniedError

from store.ledger import Ledger, LedgerRow

GIVEN = ("Ilse", "Tadeo", "Amina", "Björn", "Priya", "Imogen")
FAMILY = ("Varga", "Brandt", "Okonkwo", "Petrescu", "Raghunathan")


def _rows(gateway: Gateway, session: str) -> list[LedgerRow]:
    return [r for r in Ledger(gateway.services.db).rows("acme", session) if r.metric != "days"]


def test_B78_fifty_strangers_at_once(gateway: Gateway) -> None:
    """No session header: each conversation is told from the others by itself."""

    def one(k: int) -> str:
        messages: Any = [{"role": "user", "content": f"I am User{k} Varga{k}, greet me."}]
        if k % 2:
            done = gateway.client().chat.completions.create(model="test-model", messages=messages)
            return done.choices[0].message.content or ""
        chunks = gateway.client().chat.completions.create(
            model="test-model", messages=messages, stream=True
        )
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)

    start = len(gateway.upstream.requests)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(50)))
    assert answers == [f"You wrote: I am User{k} Varga{k}, greet me. Thank you." for k in range(50)]
    sent = [raw.decode() for raw in gateway.upstream.requests[start:]]
    assert len(sent) == 50
    assert not any(f"Varga{k}" in raw for raw in sent for k in range(50))


def test_B79_thirty_requests_of_one_session(gateway: Gateway) -> None:
    """Overlapping names, one session: one substitute an entity, and the ledger equals the draws."""
    pairs = list(itertools.product(GIVEN, FAMILY))
    texts = [
        f"{a} {b} met {c} {d}." for (a, b), (c, d) in zip(pairs, pairs[7:] + pairs[:7], strict=True)
    ]
    assert len(texts) == 30
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda t: gateway.ask(t, "overlapping", len(t) % 2 == 0), texts))
    assert answers == [f"You wrote: {text} Thank you." for text in texts]
    snapshot = gateway.services.sessions.get("acme", "overlapping")
    assert snapshot is not None
    drawn = [e for e in snapshot.entries if e.pool_index is not None]
    assert len({(e.fine_type, e.key) for e in drawn}) == len(drawn)
    assert len({e.substitute.casefold() for e in drawn}) == len(drawn)
    assert {e.key for e in drawn} >= {n.casefold() for n in GIVEN + FAMILY}
    rows = _rows(gateway, "overlapping")
    assert len(rows) == len(drawn)
    assert sum(r.epsilon for r in rows) == pytest.approx(snapshot.spent_epsilon)
    version = snapshot.version
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda t: gateway.ask(t, "overlapping"), texts[:10]))
    again = gateway.services.sessions.get("acme", "overlapping")
    assert again is not None
    assert again.version == version


@pytest.fixture(scope="module")
def thrifty(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(
        tmp_path_factory.mktemp("thrifty"),
        detector=gateway.services.detector,
        policy={"budget": {"session_epsilon": 7.0, "session_delta": 0.5}},
    ) as running:
        yield running


def test_a_small_budget_is_never_overspent(thrifty: Gateway) -> None:
    def one(k: int) -> bool:
        given, family = GIVEN[k % len(GIVEN)], FAMILY[k % len(FAMILY)]
        try:
            thrifty.ask(f"Tell {given} {family} about it.", "thrifty", k % 2 == 0)
        except PermissionDeniedError as error:
            assert error.code == "privacy_budget_exceeded"
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        done = list(pool.map(one, range(30)))
    snapshot = thrifty.services.sessions.get("acme", "thrifty")
    assert snapshot is not None
    assert 0 < sum(done) < 30
    assert 5.0 < snapshot.spent_epsilon <= 7.0
    assert sum(r.epsilon for r in _rows(thrifty, "thrifty")) == pytest.approx(
        snapshot.spent_epsilon
    )
    assert len(thrifty.upstream.requests) == sum(done)
    told = thrifty.http.get(f"{thrifty.url}/privacy/sessions/thrifty").json()["budget"]
    assert told == {
        "epsilon": 7.0,
        "remaining": pytest.approx(7.0 - snapshot.spent_epsilon),
        "delta": 0.5,
        "delta_remaining": pytest.approx(0.5 - snapshot.spent_delta),
    }


def test_B82_many_small_requests_leave_nothing_open(gateway: Gateway) -> None:
    """Open files and threads stay flat; what is kept per session and text is bounded."""

    def some(count: int, start: int) -> None:
        for k in range(start, start + count):
            body = {
                "model": "test-model",
                "messages": [{"role": "user", "content": f"Note {k % 7} for Ilse Varga."}],
                "stream": k % 2 == 0,
            }
            assert gateway.post(body, f"leak-{k % 40}").status_code == 200

    some(40, 0)
    gc.collect()
    files, views = len(os.listdir("/proc/self/fd")), len(gateway.pipeline.views._kept)
    objects = len(gc.get_objects())
    some(140, 40)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= files + 5
    assert len(gateway.pipeline.views._kept) <= min(views + 40, 512)
    assert len(gc.get_objects()) < objects + 140 * 100


def test_what_is_kept_is_bounded(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.views._KEPT", 8)
    for k in range(12):
        gateway.ask("Note for Ilse Varga.", f"bounded-{k}")
    assert len(gateway.pipeline.views._kept) <= 8
