"""A store that fails, and a deadline that passes: 503, nothing forwarded, nothing charged."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from e2e_gateway import Gateway, kept_log, running_gateway
from sqlalchemy import event, exc

from gateway.deadline import Deadline
from privacy.interrupt import Interrupted, checkpoint
from privacy.types import Span

CANARIES = ("Ilse", "Varga", "Tadeo", "Brandt", "canary")
TEXT = "Tell Ilse Varga and Tadeo Brandt. " + " ".join(
    f"Write to canary{i}.person@corp{i}.internal." for i in range(120)
)
SQLITE_LARGEST = 4_294_967_294


@contextmanager
def _pragmas(gateway: Gateway, during: str, afterwards: str) -> Iterator[None]:
    """Run a statement on every connection that the store takes, another when it is over."""
    engine = gateway.services.db.engine
    statement = during

    def prepare(connection: Any, _record: Any, _proxy: Any) -> None:
        connection.execute(statement)

    event.listen(engine, "checkout", prepare)
    try:
        yield
    finally:
        statement = afterwards
        for connection in [engine.connect() for _ in range(4)]:
            connection.close()
        event.remove(engine, "checkout", prepare)
        engine.dispose()


@contextmanager
def full_disk(gateway: Gateway) -> Iterator[None]:
    with _pragmas(
        gateway, "PRAGMA max_page_count = 1", f"PRAGMA max_page_count = {SQLITE_LARGEST}"
    ):
        yield


@contextmanager
def read_only(gateway: Gateway) -> Iterator[None]:
    with _pragmas(gateway, "PRAGMA query_only = 1", "PRAGMA query_only = 0"):
        yield


@contextmanager
def locked(gateway: Gateway) -> Iterator[None]:
    """Another process writes for longer than the busy timeout."""
    path = gateway.services.db.path
    assert path is not None
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with _pragmas(gateway, "PRAGMA busy_timeout = 100", "PRAGMA busy_timeout = 10000"):
            yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def damaged(gateway: Gateway) -> Iterator[None]:
    """The lowest layer fails at commit, after everything was written."""

    def fail(_connection: Any) -> None:
        raise exc.OperationalError("COMMIT", None, sqlite3.OperationalError("disk error: canary"))

    event.listen(gateway.services.db.engine, "commit", fail)
    try:
        yield
    finally:
        event.remove(gateway.services.db.engine, "commit", fail)


FAULTS: dict[str, Callable[[Gateway], Any]] = {
    "full disk": full_disk,
    "read-only": read_only,
    "locked": locked,
    "commit fails": damaged,
}


def _body(text: str, stream: bool) -> dict[str, Any]:
    return {
        "model": "test-model",
        "stream": stream,
        "messages": [{"role": "user", "content": text}],
    }


@pytest.fixture(scope="module")
def apart(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose store may be broken."""
    folder = tmp_path_factory.mktemp("apart")
    with running_gateway(folder, detector=gateway.services.detector) as running:
        yield running


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("known", [False, True], ids=["new session", "known session"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_failing_store(apart: Gateway, fault: str, known: bool, stream: bool) -> None:
    session = f"{fault}-{known}-{stream}".replace(" ", "-")
    if known:
        apart.ask("Tell Ilse Varga.", session)
    before, sent = apart.account(session), len(apart.upstream.requests)
    with kept_log() as log, FAULTS[fault](apart):
        response = apart.post(_body(TEXT, stream), session)
    assert response.status_code == 503, response.text
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("service_unavailable", "store_unavailable")
    assert len(apart.upstream.requests) == sent
    assert apart.account(session)[1:] == before[1:]  # an empty session may have been opened
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
    assert len(log.serious()) <= 1
    apart.ask(TEXT, session, stream)
    version, rows, epsilon = apart.account(session)
    assert rows > before[1]
    assert epsilon > before[2]
    apart.ask(TEXT, session, stream)
    assert apart.account(session) == (version, rows, epsilon)


@pytest.mark.parametrize("fault", ["full disk", "read-only", "locked"])
def test_what_is_known_needs_no_write(apart: Gateway, fault: str) -> None:
    """A session whose entities are all drawn goes on while nothing can be written."""
    text = "Tell Ilse Varga."
    apart.ask(text, "known-all")
    with FAULTS[fault](apart):
        assert apart.ask(text, "known-all") == f"You wrote: {text} Thank you."


@pytest.mark.parametrize("fault", FAULTS)
def test_other_routes_say_it_too(apart: Gateway, fault: str) -> None:
    with kept_log() as log, FAULTS[fault](apart):
        made = apart.post({"name": "canary"}, path="/vector_stores")
        gone = apart.http.delete(f"{apart.url}/privacy/sessions/known-all")
    for response in (made, gone):
        if response.status_code not in (404, 200):  # little may still fit on a full disk
            assert response.status_code == 503
            assert response.json()["error"]["type"] == "service_unavailable"
    assert made.status_code == 503 or fault == "full disk"
    assert not any(c in "".join(log.lines) for c in CANARIES)
    assert len(log.serious()) <= 2


class SlowDetector:
    """Takes its time over each text; ``stubborn``: without ever asking whether it is wanted."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.stubborn = False
        self.slow = True
        self.gave_up = threading.Event()

    def detect(self, texts: Sequence[str]) -> list[list[Span]]:
        if self.stubborn:
            time.sleep(1.2)
        elif self.slow:
            try:
                for _ in range(400):
                    time.sleep(0.05)
                    checkpoint()
            except Interrupted:
                self.gave_up.set()
                raise
        result: list[list[Span]] = self.inner.detect(texts)
        return result


@pytest.fixture(scope="module")
def short(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with one worker and one second for a request."""
    detector: Any = SlowDetector(gateway.services.detector)
    with running_gateway(
        tmp_path_factory.mktemp("short"), detector=detector, request_timeout=1.0, worker_threads=1
    ) as running:
        yield running


def _detector(gateway: Gateway) -> Any:
    return gateway.services.detector


@pytest.mark.parametrize("stubborn", [False, True], ids=["asks", "never asks"])
def test_a_deadline_during_preparation(short: Gateway, stubborn: bool) -> None:
    detector = _detector(short)
    detector.slow, detector.stubborn = True, stubborn
    detector.gave_up.clear()
    session = f"late-{stubborn}"
    with kept_log() as log:
        response = short.post(_body(TEXT, stubborn), session)
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "deadline_exceeded"
    detector.slow = detector.stubborn = False
    short.services.workers.submit(lambda: None).result(10)  # the only worker is free again
    assert stubborn or detector.gave_up.is_set()
    assert short.upstream.requests == []
    assert short.account(session) == (0, 0, 0.0)
    assert not any(c in response.text + "".join(log.lines) for c in CANARIES)
    assert log.serious() == []


def test_a_crowd_of_late_requests_blocks_nobody_for_long(short: Gateway) -> None:
    detector = _detector(short)
    detector.slow = True
    crowd = [threading.Thread(target=short.post, args=(_body("Hi", False), "")) for _ in range(6)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(10)
    detector.slow = False
    assert short.ask_again("Hi Ilse Varga", "after") == "You wrote: Hi Ilse Varga Thank you."


def test_B92_a_large_field_meets_the_deadline(short: Gateway) -> None:
    """700 KiB of prose are many seconds of work: it is given up, and the worker is free."""
    detector = _detector(short)
    detector.slow = False
    text = "The pump was serviced by Ilse Varga on schedule. " * 15_000
    response = short.post(_body(text, False), "large")
    assert response.status_code == 503
    assert response.json()["error"]["code"] == "deadline_exceeded"
    assert short.ask_again("Hi Ilse Varga", "after-large") == "You wrote: Hi Ilse Varga Thank you."
    assert short.account("large") == (0, 0, 0.0)


def test_either_sealed_or_cancelled() -> None:
    deadline = Deadline(60)
    deadline.seal()
    assert not deadline.cancel()
    deadline.check()
    deadline = Deadline(60)
    assert deadline.cancel()
    with pytest.raises(Interrupted):
        deadline.seal()
    with pytest.raises(Interrupted):
        Deadline(0).seal()
