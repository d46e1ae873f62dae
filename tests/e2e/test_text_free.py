"""Requests that leave as noised embeddings: who sends them there, what leaves, what it costs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e_gateway import Gateway, running_gateway
from loopback import QuietHandler, send, serving

from connectors.router import ConfigurationError, LiteLlmParams, ModelEntry
from connectors.token_encoder import MiniLmTokens
from policies.loader import PolicyError, load_policy
from privacy.ppft.accounting import ACCOUNT
from store.ledger import Ledger

TEXT = "Ilse Varga of Brunnholt Glaswerke wrote to ilse.varga@example.com about the lease."


@contextmanager
def text_free_server() -> Iterator[tuple[str, list[bytes]]]:
    """A backend that records what reaches it and answers the same to everybody."""
    seen: list[bytes] = []
    model = {"name": "mine", "encoder": MiniLmTokens.name, "dimensions": 384, "k": 4}

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            send(self, 200, json.dumps({"data": [model]}).encode(), "application/json")

        def do_POST(self) -> None:
            body = self.body()
            seen.append(f"{self.path}\n{self.headers}".encode() + body)
            part = {"text": "The lease ends in May.", "finish": "stop", "tokens": 6}
            if (
                b"stream" in body
                and body[-600:].find(b"\x01") >= 0
                and self.headers.get("x-stream")
            ):
                return
            send(self, 200, json.dumps(part).encode(), "application/json")

    with serving(Handler) as url:
        yield url, seen


@contextmanager
def gateway_with(folder: Path, **policy: Any) -> Iterator[tuple[Gateway, list[bytes]]]:
    with text_free_server() as (url, seen):
        params = LiteLlmParams.model_validate(
            {"model": "ppft/mine", "api_base": url, "api_key": "k", "k": 4, "epsilon": 75.0}
        )
        entry = ModelEntry(model_name="ppft/mine", litellm_params=params)
        with running_gateway(folder, policy=policy or None, models=[entry]) as gateway:
            yield gateway, seen


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
        for _ in range(2):  # every attempt is noise anew, so it costs again
            response = gateway.post(_body(TEXT, "ppft/mine"), "plain")
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
