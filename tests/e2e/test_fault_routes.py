"""Faults of comparable systems, by id: routes, providers, policies, files, what is installed."""

import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from e2e_gateway import Gateway, found_in, kept_log, running_gateway

from connectors.litellm_provider import load_litellm
from gateway.events import Refused
from policies.loader import PolicyError, parse_policy
from privacy.detection.engine import DetectionFailed, Detector
from privacy.types import Span

ROOT = Path(__file__).parents[2]
BALANCED = (ROOT / "policies" / "defaults" / "balanced.yaml").read_text()
TEXT = "Write to Tadeo Brandt at tadeo@example.com"
LEAKS = ("Tadeo", "Brandt", "tadeo")

# id -> path, body: routes that there are not; nothing may slip past the chat route's protection.
REFUSED_ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "B57": ("/messages", {"stream": True, "messages": [{"role": "user", "content": TEXT}]}),
    "B70": ("/messages", {"model": "test-model", "messages": [{"role": "user", "content": TEXT}]}),
    "B71": ("/messages", {"messages": [{"role": "system", "content": TEXT}]}),
    "B75": ("/embeddings", {"model": "test-model", "input": TEXT}),
    "B84": ("/embeddings", {"input": [TEXT], "guardrails": ["redact"]}),
    "completions": ("/completions", {"prompt": TEXT}),
    "moderations": ("/moderations", {"input": TEXT}),
    "a slash": ("/chat/completions/", {"messages": [{"role": "user", "content": TEXT}]}),
    "another slash": ("/responses/", {"input": TEXT}),
    "unknown": ("/chat/completions/x", {"messages": [{"role": "user", "content": TEXT}]}),
}


@pytest.mark.parametrize("case", REFUSED_ROUTES)
def test_other_routes_are_refused(gateway: Gateway, case: str) -> None:
    path, body = REFUSED_ROUTES[case]
    before = len(gateway.upstream.requests)
    with kept_log() as log:
        response = gateway.post({"model": "test-model", **body}, path=path)
    assert response.status_code == 404
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == "unknown_url"
    assert len(gateway.upstream.requests) == before
    assert not any(leak in response.text + "".join(log.lines) for leak in LEAKS)


def test_B71_unknown_roles_and_fields_pass_scanned(gateway: Gateway) -> None:
    gateway.ask(
        [
            {"role": "critic", "content": TEXT, "mood": {"note": TEXT}},
            {"role": "user", "content": "Go on."},
        ],
        "fault-B71",
        extra_body={"future": [TEXT]},
    )
    sent = gateway.upstream.requests[-1].decode()
    assert found_in(sent, LEAKS) == []
    body = gateway.upstream.bodies[-1]
    assert body["messages"][0]["role"] == "critic"
    assert body["messages"][0]["mood"]["note"].startswith("Write to ")
    assert body["future"][0].startswith("Write to ")


def _blocks(*, images: bool) -> list[dict[str, Any]]:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAA="}}
    reference = {"type": "tool_reference", "tool_name": "send_mail"}
    call = {"id": "call_9", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "user", "content": TEXT},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_9", "content": [picture if images else reference]},
        {"role": "user", "content": [reference, {"type": "text", "text": TEXT}, reference]},
    ]


@pytest.fixture(scope="module")
def seeing(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(
        tmp_path_factory.mktemp("seeing"),
        detector=gateway.services.detector,
        policy={"images": "allow"},
    ) as running:
        yield running


@pytest.mark.parametrize("images", [False, True], ids=["reference", "image"])
def test_B65_blocks_keep_count_order_and_ids(seeing: Gateway, images: bool) -> None:
    body = {"model": "test-model", "messages": _blocks(images=images)}
    assert seeing.post(body, "fault-B65").status_code == 200
    sent = seeing.upstream.bodies[-1]["messages"]
    assert sent[2] == body["messages"][2]
    assert sent[1]["tool_calls"] == body["messages"][1]["tool_calls"]
    assert [p["type"] for p in sent[3]["content"]] == ["tool_reference", "text", "tool_reference"]


def test_B73_bytes_stay_bytes(seeing: Gateway) -> None:
    url = "data:image/png;base64,iVBORw0KGgoAKIAABCDEFGHIJKLMNOPQRST+/tadeo=="
    parts = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": f"{TEXT}, see ![it]({url})"},
    ]
    messages = [{"role": "user", "content": parts}]
    assert (
        seeing.post({"model": "test-model", "messages": messages}, "fault-B73").status_code == 200
    )
    sent = seeing.upstream.bodies[-1]["messages"][0]["content"]
    assert sent[0] == parts[0]
    assert url in sent[1]["text"]
    assert found_in(sent[1]["text"], ("Brandt",)) == []


def test_B75_B76_documents_are_found_by_name_and_sealed(gateway: Gateway) -> None:
    """The embedder is local and sees originals; what is stored is encrypted."""
    client = gateway.client()
    store = client.vector_stores.create(name="people")
    for name, text in {
        "a.txt": "Tadeo Brandt lives in Lund and keeps bees.",
        "b.txt": "The pump was serviced. Ilse Varga, born 17/02/1984, signed for it.",
        "c.txt": "Minutes of the meeting on parking spaces.",
    }.items():
        file = client.files.create(file=(name, io.BytesIO(text.encode())), purpose="assistants")
        client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=file.id)
    before = len(gateway.upstream.requests)
    for query, found in {"Tadeo Brandt": "keeps bees", "Ilse Varga": "signed for it"}.items():
        top = client.vector_stores.search(vector_store_id=store.id, query=query).data[0]
        assert found in top.content[0].text
    assert len(gateway.upstream.requests) == before
    folder = gateway.services.settings.data_dir
    for path in (p for p in folder.rglob("*") if p.is_file()):
        raw = path.read_bytes()
        assert not any(n in raw for n in (b"Tadeo Brandt", b"Ilse Varga", b"17/02/1984")), path


class Broken:
    """A detection service that is down."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def detect(self, texts: Sequence[str]) -> list[list[Span]]:
        raise self.error


DOWN: dict[str, Exception] = {
    "B83": DetectionFailed("HTTP 500: SSN 536-22-8714"),
    "B84": ConnectionRefusedError("SSN 536-22-8714"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", DOWN)
def test_without_detection_nothing_leaves(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, case: str, stream: bool
) -> None:
    monkeypatch.setattr(gateway.services, "detector", Broken(DOWN[case]))
    before, start = len(gateway.upstream.requests), len(gateway.events)
    body = {
        "model": "test-model",
        "messages": [{"role": "user", "content": "SSN 536-22-8714"}],
        "stream": stream,
    }
    with kept_log() as log:
        response = gateway.post(body, f"fault-{case}")
    assert response.status_code == 503
    assert response.json()["error"]["type"] == "service_unavailable"
    assert len(gateway.upstream.requests) == before
    refused = [e for e in gateway.events[start:] if isinstance(e, Refused)]
    assert [(e.status, e.code) for e in refused] == [(503, "sanitiser_failed")]
    assert "536-22" not in response.text + "".join(log.lines)


# Policies that say what the gateway can not do are refused when they are loaded.
IMPOSSIBLE = {
    "B22": "patterns:\n  - {name: mobile, regex: '^07[0-9]{9}$'}",
    "B59": "output:\n  mask: [EMAIL]",
    "B60": "response_rules:\n  - {type: EMAIL, action: mask}",
    "B88": "mode: logging_only",
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_policies_are_refused(case: str) -> None:
    with pytest.raises(PolicyError, match=r"mine\.yaml:\d+: "):
        parse_policy(f"{BALANCED}\n{IMPOSSIBLE[case]}\n", "mine.yaml")


POLICIES: dict[str, tuple[dict[str, Any], str, Callable[[str], bool]]] = {
    "B22": (
        {"patterns": [{"name": "mobile", "type": "PHONE", "regex": r"\b07[0-9]{9}\b"}]},
        "ring 07700900123 tonight",
        lambda sent: "07700900123" not in sent and sent.endswith(" tonight"),
    ),
    "B30": (
        {"entities": {"PHONE": {"action": "surrogate", "threshold": 0.9}}},
        "Order 5550142 shipped",
        lambda sent: sent == "Order 5550142 shipped",
    ),
}


@pytest.mark.parametrize("case", POLICIES)
def test_policies_govern_what_is_replaced(
    gateway: Gateway, tmp_path_factory: pytest.TempPathFactory, case: str
) -> None:
    policy, text, right = POLICIES[case]
    with running_gateway(
        tmp_path_factory.mktemp(case), detector=gateway.services.detector, policy=policy
    ) as running:
        assert running.ask(text, case) == f"You wrote: {text} Thank you."
        assert right(running.upstream.bodies[-1]["messages"][0]["content"])


_calls: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _calls is not None and event in ("socket.connect", "socket.getaddrinfo"):
        address = arguments[1] if event == "socket.connect" else arguments[0]
        _calls.append(str(address[0] if isinstance(address, tuple) else address))


def test_B94_nobody_is_called_but_the_upstream(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A first request, everything loaded for it, with an address whose suffix has to be known."""
    global _calls
    sys.addaudithook(_hook)
    _calls = []
    try:
        with running_gateway(tmp_path_factory.mktemp("first")) as running:
            assert isinstance(running.services.detector, Detector)
            running.ask(
                "Write to bo@example.com and bo.lund@example.co.uk, +44 20 7946 0958", "B94"
            )
        called = set(_calls)
    finally:
        _calls = None
    assert called <= {"127.0.0.1", "localhost"}


def test_B95_everything_is_pinned() -> None:
    lines = [
        line.split("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()
    ]
    pins = [line for line in lines if line]
    assert pins
    assert [p for p in pins if not re.fullmatch(r"[A-Za-z0-9_.\-]+==[^\s*]+(\s*;.*)?", p)] == []


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8", "1.107.3", ""])
def test_B95_bad_releases_are_never_imported(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    def installed(_name: str) -> str:
        if not version:
            raise metadata.PackageNotFoundError
        return version

    monkeypatch.setattr("connectors.litellm_provider.version", installed)
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ModuleNotFoundError, match="\\[litellm\\]"):
        load_litellm()
