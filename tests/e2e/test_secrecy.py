"""Nothing that is logged, told in an error or shown by repr() holds what a user wrote."""

import dataclasses
import importlib
import io
import json
import pkgutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from e2e_gateway import Gateway, kept_log, running_gateway
from e2e_upstream import open_stream, send

from gateway.errors import fault_text
from gateway.guard import GuardBlocked
from store.errors import StoreUnavailable

CANARIES = ("Zsuzsanna", "Quillfeather", "zsuzsanna", "quillfeather", "555-0187", "ghp_Wm4")
NAME = "Zsuzsanna Quillfeather"
TEXT = (
    f"Ask {NAME}, zsuzsanna.quillfeather@corp9.internal, +1 212-555-0187; "
    "her token is ghp_Wm4Rt5Vw1Xy7Bc9Df2Gh4Jk6Ln0PaSsZk3Q."
)
MESSAGES = [{"role": "user", "content": TEXT}]
Handler = BaseHTTPRequestHandler


def _body(**more: Any) -> dict[str, Any]:
    return {"model": "test-model", "messages": MESSAGES, **more}


def _leaks(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


def _quote(handler: Handler, body: dict[str, Any]) -> None:
    send(handler, 422, json.dumps({"error": {"message": TEXT}}).encode(), "application/json")


def _break_off(handler: Handler, body: dict[str, Any]) -> None:
    open_stream(handler, b"data: " + json.dumps({"error": {"message": TEXT}}).encode() + b"\n\n")


@pytest.fixture(scope="module")
def poor(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose sessions may spend next to nothing, and where card numbers are blocked."""
    with running_gateway(
        tmp_path_factory.mktemp("poor"),
        detector=gateway.services.detector,
        policy={"budget": {"session_epsilon": 0.5}},
    ) as running:
        yield running


REFUSED: dict[str, dict[str, Any]] = {
    "model": _body(model=NAME),
    "role": _body(messages=[{"role": NAME, "content": TEXT}]),
    "content": _body(messages=[{"role": "user", "content": {NAME: TEXT}}]),
    "part": _body(messages=[{"role": "user", "content": [{"type": {NAME: 1}, "text": TEXT}]}]),
    "media": _body(
        messages=[{"role": "user", "content": [{"type": "image_url", "image_url": TEXT}]}]
    ),
    "stream": _body(stream=NAME),
    "tools": _body(tools=[TEXT]),
    "n": _body(n=NAME),
    "user": _body(user={NAME: TEXT}),
    "session": _body(metadata={"penname_session": NAME}),
    "store": _body(penname={"vector_store_ids": [NAME]}),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_answers_leave_no_trace(gateway: Gateway, stream: bool) -> None:
    with kept_log() as log:
        answer = gateway.ask(MESSAGES, f"secrecy-{stream}", stream)
    assert NAME in answer
    assert _leaks("".join(log.lines)) == []


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_quote_nothing(gateway: Gateway, case: str) -> None:
    with kept_log() as log:
        response = gateway.post(REFUSED[case])
    assert 400 <= response.status_code < 500
    assert _leaks(response.text + "".join(log.lines)) == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("script", [_quote, _break_off])
def test_upstream_errors_quote_nothing(scripted: Gateway, script: Any, stream: bool) -> None:
    scripted.upstream.script = script
    with kept_log() as log:
        response = scripted.post(_body(stream=stream), "secrecy-upstream")
    assert '"error"' in response.text
    assert _leaks(response.text + "".join(log.lines)) == []


def test_a_spent_budget_quotes_nothing(poor: Gateway) -> None:
    with kept_log() as log:
        response = poor.post(_body(), "poor")
    assert (response.status_code, response.headers["x-should-retry"]) == (403, "false")
    assert response.json()["error"]["code"] == "privacy_budget_exceeded"
    assert poor.upstream.requests == []
    assert poor.account("poor")[1:] == (0, 0.0)
    assert _leaks(response.text + "".join(log.lines)) == []


FAILURES: dict[str, tuple[str, Exception, int, str]] = {
    "guard blocks": (
        "gateway.pipeline.check_outbound",
        GuardBlocked(["PERSON"]),
        403,
        "guard_blocked",
    ),
    "guard fails": ("gateway.pipeline.check_outbound", RuntimeError(TEXT), 503, "sanitiser_failed"),
    "planner fails": ("gateway.pipeline.Planner.plan", KeyError(TEXT), 503, "sanitiser_failed"),
    "store fails": (
        "store.sessions.SessionStore.apply",
        StoreUnavailable("The disk is full."),
        503,
        "store_unavailable",
    ),
    "detector fails": (
        "privacy.detection.engine.Detector.detect",
        RuntimeError(TEXT),
        503,
        "sanitiser_failed",
    ),
    "restorer fails": (
        "gateway.api.chat.service.restore_completion",
        RuntimeError(TEXT),
        500,
        "internal_error",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures_quote_nothing(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    target, error, status, code = FAILURES[case]

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    session = f"secrecy-{case.replace(' ', '-')}"
    sent = len(gateway.upstream.requests)
    with monkeypatch.context() as patch, kept_log() as log:
        patch.setattr(target, fail)
        response = gateway.post(_body(), session)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert _leaks(response.text + "".join(log.lines)) == []
    assert len(log.serious()) <= 1
    if status != 500:
        assert len(gateway.upstream.requests) == sent
        assert gateway.account(session)[1:] == (0, 0.0)


def test_files_leave_no_trace(gateway: Gateway) -> None:
    client = gateway.client()
    with kept_log() as log:
        upload = client.files.create(
            file=(f"{NAME}.txt", io.BytesIO(TEXT.encode())), purpose="assistants"
        )
        store = client.vector_stores.create(name=NAME)
        client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=upload.id)
        client.vector_stores.search(vector_store_id=store.id, query=NAME)
        broken = gateway.post(
            b'{"query": "' + NAME.encode(), path=f"/vector_stores/{store.id}/search"
        )
        wrong = gateway.post(
            {"name": "x", "chunking_strategy": {"type": NAME, "static": TEXT}},
            path="/vector_stores",
        )
        queried = gateway.http.get(f"{gateway.url}/files", params={"limit": NAME, "order": NAME})
        unknown = gateway.http.get(f"{gateway.url}/files/{NAME}")
    for response in (broken, wrong, queried, unknown):
        assert 400 <= response.status_code < 500, response.text
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}
        assert _leaks(response.text) == []
    assert _leaks("".join(log.lines)) == []


def test_events_show_no_original(gateway: Gateway) -> None:
    start = len(gateway.events)
    gateway.ask(MESSAGES, "secrecy-events")
    seen = gateway.events[start:]
    assert {type(event).__name__ for event in seen} == {"Sanitised", "Answered"}
    assert _leaks("".join(map(repr, seen))) == []
    snapshot = gateway.services.sessions.get("acme", "secrecy-events")
    assert snapshot is not None
    assert _leaks(repr(snapshot) + repr(gateway.pipeline.views.of(snapshot))) == []


# Fields that hold, or may hold, what somebody wrote.
_PRIVATE = frozenset(
    "text texts original originals substitute body payload content contents form received restored "
    "filename surface raws chars question chunks items entries pieces mentions replacement title arguments "
    "attributes metadata domains".split()
)
# The same words for things that are public.
_PUBLIC = frozenset(("_Rule.form", "_Text.pieces"))


def _dataclasses() -> Iterator[type]:
    for package in ("gateway", "connectors", "store", "privacy", "policies"):
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            if ".migrations" in module.name or module.name.endswith("__main__"):
                continue
            found = importlib.import_module(module.name)
            for value in vars(found).values():
                if isinstance(value, type) and value.__module__ == module.name:
                    if dataclasses.is_dataclass(value):
                        yield value


def test_no_dataclass_shows_texts() -> None:
    shown = [
        f"{cls.__module__}.{cls.__qualname__}.{field.name}"
        for cls in _dataclasses()
        for field in dataclasses.fields(cls)
        if field.repr and field.name in _PRIVATE and f"{cls.__name__}.{field.name}" not in _PUBLIC
    ]
    assert shown == []


@pytest.mark.parametrize(
    "fault",
    [
        {"type": "union_tag_invalid", "msg": f"Input tag '{NAME}' found"},
        {"type": "json_invalid", "msg": f"Invalid JSON: {NAME}"},
        {"type": "a_kind_of_tomorrow", "msg": NAME},
        {},
    ],
)
def test_only_known_messages_are_told(fault: dict[str, Any]) -> None:
    assert fault_text(fault) == "is not valid"
    assert fault_text({"type": "missing", "msg": "Field required"}) == "Field required"
