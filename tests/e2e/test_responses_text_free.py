"""Responses of models that receive no text: by name, by the policy, whole and streamed."""

from pathlib import Path
from typing import Any

import pytest
from e2e_text_free import gateway_with
from openai import BadRequestError

from privacy.ppft.accounting import ACCOUNT
from store.ledger import Ledger

TEXT = "Ilse Varga of Brunnholt Glaswerke wrote to ilse.varga@example.com about the lease."
ANSWER = "The lease ends in May."


def _charged(gateway: Any, session: str) -> list[str]:
    return [row.account for row in Ledger(gateway.services.db).rows("acme", session)]


@pytest.mark.parametrize("routed", [False, True], ids=["by name", "by policy"])
def test_no_word_leaves(tmp_path: Path, routed: bool) -> None:
    routes = {"text_free_model": "ppft/mine", "types": ["EMAIL"]} if routed else {}
    model = "test-model" if routed else "ppft/mine"
    headers = {"x-penname-session": "noised"}
    with gateway_with(tmp_path, routes=routes) as (gateway, seen):
        client = gateway.client()
        raw = client.responses.with_raw_response.create(
            model=model, input=TEXT, extra_headers=headers
        )
        made = raw.parse()
        assert raw.headers["x-penname-route"] == made.model == "ppft/mine"
        assert float(raw.headers["x-penname-ppft-epsilon"]) > 0
        assert made.output_text == ANSWER
        assert made.usage is not None and made.usage.output_tokens == 6
        assert made.to_dict()["penname"]["ppft"]["slots"] == made.usage.input_tokens  # type: ignore[index]
        events = list(
            client.responses.create(
                model=model, input="And now?", stream=True, previous_response_id=made.id
            )
        )
        done = events[-1].response  # type: ignore[union-attr]
        assert done.output_text == ANSWER and done.model == "ppft/mine"
        assert done.usage.output_tokens == 6
        assert done.to_dict()["penname"]["ppft"]["epsilon"] > 0
        assert gateway.upstream.requests == []
        assert len(seen) == 2 and _charged(gateway, "noised") == [ACCOUNT, ACCOUNT]
        for body in seen:
            for word in (b"Ilse", b"ilse", b"Varga", b"varga", b"lease", b"Brunnholt"):
                assert word not in body


def test_what_it_can_not_do_is_refused(tmp_path: Path) -> None:
    tool: Any = {"type": "function", "name": "f", "parameters": {}, "strict": False}
    wishes: list[tuple[str, dict[str, Any]]] = [
        ("tools", {"tools": [tool]}),
        ("response_format", {"text": {"format": {"type": "json_object"}}}),
        ("from 1 to 1024", {"max_output_tokens": 1025}),
        ("1 to 2048 tokens", {"input": TEXT * 2_000}),
        ("a user message", {"input": [{"role": "developer", "content": TEXT}]}),
        ("tokens", {"input": ""}),
    ]
    with gateway_with(tmp_path) as (gateway, seen):
        for why, fields in wishes:
            with pytest.raises(BadRequestError) as caught:
                gateway.client().responses.create(
                    model="ppft/mine",
                    extra_headers={"x-penname-session": "s"},
                    **{"input": TEXT, **fields},
                )
            # Not "the provider rejected the request": it was never asked.
            assert why in caught.value.message and "Nothing was sent" in caught.value.message
            assert "Ilse" not in str(caught.value.body)
        assert seen == [] and _charged(gateway, "s") == []


def test_a_refusal_in_mid_stream(tmp_path: Path) -> None:
    fault: dict[str, Any] = {"part": {"text": "x", "finish": None, "tokens": 1}}
    with gateway_with(tmp_path, fault) as (gateway, _):
        fault["part"] = {"text": 5, "finish": "stop", "tokens": 1}
        response = gateway.post(
            {"model": "ppft/mine", "input": TEXT, "stream": True}, "s", "/responses"
        )
        assert response.status_code == 502
        assert response.json()["error"]["code"] == "upstream_malformed"
