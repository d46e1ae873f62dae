"""Requests that leave as noised embeddings: who sends them there, what leaves, what it costs."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from e2e_gateway import Gateway, running_gateway
from e2e_text_free import gateway_with

from connectors.router import ConfigurationError
from connectors.token_encoder import MiniLmTokens
from gateway.settled import SettledTexts
from policies.loader import PolicyError, load_policy
from privacy.ppft.accounting import ACCOUNT
from store.ledger import Ledger
from store.sessions import Snapshot

TEXT = "Ilse Varga of Brunnholt Glaswerke wrote to ilse.varga@example.com about the lease."


def _body(text: str, model: str = "test-model") -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}]}


def _check(gateway: Gateway, seen: list[bytes], response: Any, session: str) -> None:
    """The answer came without a word leaving, and the ledger has it in the account of its own."""
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "The lease ends in May."
    assert response.json()["model"] == response.headers["x-penname-route"] == "ppft/mine"
    assert gateway.upstream.requests == []
    for word in (b"Ilse", b"ilse", b"Varga", b"varga", b"lease", b"Brunnholt"):
        assert word not in seen[-1]
    rows = Ledger(gateway.services.db).rows("acme", session)
    noised = [row for row in rows if row.account == ACCOUNT]
    assert len(noised) == len(seen)
    assert noised[-1].epsilon == pytest.approx(float(response.headers["x-penname-ppft-epsilon"]))
    assert gateway.account(session)[2] == 0.0
    account = gateway.http.get(f"{gateway.url}/privacy/sessions/{session}").json()
    assert account["ledger"]["rows"] == 0
    assert account["ppft"]["requests"] == len(noised)
    assert account["ppft"]["epsilon"] == pytest.approx(sum(row.epsilon for row in noised))


def test_a_model_without_text_is_an_ordinary_model(tmp_path: Path) -> None:
    with gateway_with(tmp_path) as (gateway, seen):
        assert "ppft/mine" in [m.id for m in gateway.client().models.list().data]
        plain = {"response_format": {"type": "text"}, "n": 1, "tools": []}  # asks for nothing more
        for more in ({}, plain):  # every attempt is noise anew, so it costs again
            response = gateway.post({**_body(TEXT, "ppft/mine"), **more}, "plain")
            _check(gateway, seen, response, "plain")
        refused = gateway.post({**_body(TEXT, "ppft/mine"), "stop": ["x"]}, "plain")
        assert refused.status_code == 400
        assert set(refused.json()["error"]) == {"message", "type", "param", "code"}
        assert len(Ledger(gateway.services.db).rows("acme", "plain")) == len(seen) == 2


@pytest.mark.parametrize(
    ("routes", "text"),
    [
        ({"always": True}, "Hello there, when does the lease end?"),
        ({"types": ["EMAIL"]}, TEXT),
        ({"uncovered_script": "route"}, "Когда заканчивается договор аренды Ильзы Варги?"),
    ],
)
def test_the_policy_sends_a_request_there(
    tmp_path: Path, routes: dict[str, Any], text: str
) -> None:
    with gateway_with(tmp_path, routes={"text_free_model": "ppft/mine", **routes}) as (gw, seen):
        _check(gw, seen, gw.post(_body(text), "routed"), "routed")
        if not routes.get("always"):
            assert gw.ask("Hello", "other") == "You wrote: Hello Thank you."
            assert len(seen) == 1


def test_a_spent_budget_sends_the_request_there(tmp_path: Path) -> None:
    policy = {
        "routes": {"text_free_model": "ppft/mine"},
        "budget": {"session_epsilon": 0.5, "on_exhausted": "route"},
    }
    with gateway_with(tmp_path, **policy) as (gateway, seen):
        _check(gateway, seen, gateway.post(_body(TEXT), "poor"), "poor")


def test_an_uncovered_script_can_be_refused(tmp_path: Path) -> None:
    with gateway_with(tmp_path, routes={"uncovered_script": "block"}) as (gateway, seen):
        response = gateway.post(_body("Напишите Ильзе Варге о договоре."), "blocked")
        assert response.status_code == 403
        assert response.json()["error"]["code"] == "blocked_by_policy"
        assert gateway.upstream.requests == seen == []
        assert gateway.account("blocked") == (0, 0, 0.0)


def test_routes_must_lead_to_a_model_without_text(tmp_path: Path) -> None:
    for name in ("test-model", "nowhere"):
        with pytest.raises(ConfigurationError, match="text_free_model"):
            with running_gateway(tmp_path / name, policy={"routes": {"text_free_model": name}}):
                pass
    file = tmp_path / "policy.yaml"
    for change in ("routes: {always: true}", "routes: {types: [NOSUCH], text_free_model: x}"):
        text = (Path("policies/defaults/balanced.yaml")).read_text()
        file.write_text(f"{text}\n{change}\n")
        with pytest.raises(PolicyError, match="routes"):
            load_policy(str(file))


def _charged(gateway: Gateway, session: str) -> int:
    return len(Ledger(gateway.services.db).rows("acme", session))


def test_a_streamed_answer(tmp_path: Path) -> None:
    with gateway_with(tmp_path, routes={"text_free_model": "ppft/mine", "always": True}) as (gw, _):
        assert gw.ask(TEXT, "streamed", stream=True) == "The lease ends in May."
        assert _charged(gw, "streamed") == 1 and gw.upstream.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_backend_that_can_not_be_used_costs_nothing(tmp_path: Path, stream: bool) -> None:
    body = {**_body(TEXT, "ppft/mine"), "stream": stream}
    with gateway_with(tmp_path / "dead", address="http://127.0.0.1:9") as (gateway, seen):
        response = gateway.post(body, "dead")
        assert response.status_code == 502
        assert response.json()["error"]["code"] == "upstream_unreachable"
        assert _charged(gateway, "dead") == len(seen) == 0
    fault: dict[str, Any] = {}
    with gateway_with(tmp_path / "odd", fault) as (gateway, seen):
        for models in ({"data": ["x"]}, {"data": {"a": 1}}, {"data": []}, {}):
            fault["models"] = models
            assert gateway.post(body, "odd").status_code in (400, 502)
        assert _charged(gateway, "odd") == len(seen) == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_backend_that_fails_is_told_with_its_own_status(tmp_path: Path, stream: bool) -> None:
    body = {**_body(TEXT, "ppft/mine"), "stream": stream}
    fault: dict[str, Any] = {"status": 500}
    with gateway_with(tmp_path, fault) as (gateway, seen):
        assert gateway.post(body, "s").json()["error"]["code"] == "upstream_failed"
        fault["status"] = 0
        for part in ({"finish": "stop"}, {"text": 5, "finish": "stop", "tokens": 1}, {"text": "x"}):
            fault["part"] = part
            response = gateway.post(body, "s")
            assert response.status_code == 502
            assert response.json()["error"]["code"] == "upstream_malformed"
        assert _charged(gateway, "s") == len(seen) == 4


def test_no_cookie_of_a_provider_comes_back_to_it(tmp_path: Path) -> None:
    with gateway_with(tmp_path) as (gateway, seen):
        for session in ("one", "two"):
            gateway.post(_body(TEXT, "ppft/mine"), session)
        assert len(seen) == 2 and b"ookie" not in seen[0] + seen[1]


def test_media_may_not_pass_by_this_way_either(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    late = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": [image]}]
    with gateway_with(tmp_path, routes={"text_free_model": "ppft/mine", "always": True}) as (gw, _):
        for messages in (late, [{"role": "user", "content": [image]}]):
            response = gw.post({"model": "test-model", "messages": messages}, "media")
            assert response.json()["error"]["code"] == "media_not_allowed"
        assert _charged(gw, "media") == 0


def test_what_follows_the_last_user_message_is_read(tmp_path: Path) -> None:
    body = _body("When does the lease end?", "ppft/mine")
    body["messages"].append({"role": "system", "content": "Answer in one word. " * 20})
    with gateway_with(tmp_path) as (gateway, _):
        spent = [
            gateway.post(b, "s").json()["penname"]["ppft"]["slots"]
            for b in (body, _body("x", "ppft/mine"))
        ]
        assert spent[0] > 20 > spent[1]


def test_a_text_far_too_long_is_refused_before_it_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    encode = MiniLmTokens.encode

    def counted(self: MiniLmTokens, texts: Sequence[str]) -> Any:
        read.append(sum(map(len, texts)))
        return encode(self, texts)

    monkeypatch.setattr(MiniLmTokens, "encode", counted)
    with gateway_with(tmp_path) as (gateway, seen):
        assert gateway.post(_body("lease and word " * 60_000, "ppft/mine"), "s").status_code == 400
        assert read == seen == [] and _charged(gateway, "s") == 0


def test_the_deadline_holds_while_a_request_is_priced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(self: MiniLmTokens, texts: Sequence[str]) -> Any:
        time.sleep(3)
        raise AssertionError("too late to count")

    monkeypatch.setattr(MiniLmTokens, "encode", slow)
    with gateway_with(tmp_path) as (gateway, seen):
        gateway.services.settings.request_timeout = 1.0
        response = gateway.post(_body(TEXT, "ppft/mine"), "late")
        assert response.json()["error"]["code"] == "deadline_exceeded"
        assert _charged(gateway, "late") == len(seen) == 0


def test_a_session_forgotten_under_way_leaves_nothing_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_gateway(tmp_path) as gateway:
        pipeline = gateway.pipeline
        report = pipeline.settled.of

        def forgotten_meanwhile(snapshot: Snapshot) -> SettledTexts:
            gateway.http.delete(f"{gateway.url}/privacy/sessions/{snapshot.session_id}")
            return report(snapshot)

        monkeypatch.setattr(pipeline.settled, "of", forgotten_meanwhile)
        assert "Ilse Varga" in gateway.ask(TEXT, "going")
        assert not pipeline.settled._kept and not pipeline.views._kept
        monkeypatch.undo()
        gateway.ask(TEXT, "going")
        assert len(pipeline.settled._kept) == 1
