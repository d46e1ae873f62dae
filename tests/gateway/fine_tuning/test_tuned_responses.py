"""Fine-tuned models on ``/v1/responses``: nothing leaves, whole and streamed, turn by turn."""

from typing import Any

import openai
import pytest
from jobs_gateway import Running, rows


@pytest.fixture(scope="module")
def model(trainer: Running) -> str:
    made = trainer.create(trainer.upload(rows(salt="responses-")), suffix="moods", steps=2)
    return str(trainer.wait(made.id).fine_tuned_model)


def test_whole_and_streamed(trainer: Running, model: str) -> None:
    client = openai.OpenAI(
        base_url=trainer.url, api_key=trainer.acme.api_key, _strict_response_validation=True
    )
    raw = client.responses.with_raw_response.create(
        model=model, input="Ilse Varga had a wonderful happy delight", instructions="Judge."
    )
    made = raw.parse()
    assert made.output_text in ("good", "bad") and made.model == model
    assert made.to_dict()["penname"]["local"] is True  # type: ignore[index]
    assert made.usage is not None and made.usage.input_tokens > 0
    events = list(
        client.responses.create(
            model=model, input="a terrible failure", stream=True, previous_response_id=made.id
        )
    )
    done: Any = events[-1]
    assert done.type == "response.completed"
    assert done.response.output_text in ("good", "bad")
    assert done.response.usage.input_tokens > 0
    assert client.responses.retrieve(done.response.id) == done.response
    assert len(client.responses.input_items.list(done.response.id).data) == 3
    client.close()
    session = raw.headers["x-penname-session"]
    account = trainer.services.sessions.get("acme", session)
    assert account is not None and account.spent_epsilon == 0.0 and account.entries == ()


def test_nothing_is_opened_for_what_is_not_stored(trainer: Running, model: str) -> None:
    before = trainer.services.sessions.list("acme")
    made = trainer.acme.responses.create(model=model, input="an awful failure", store=False)
    assert made.output_text in ("good", "bad")
    assert [s.session_id for s in trainer.services.sessions.list("acme")] == [
        s.session_id for s in before
    ]


def test_other_tenants_and_other_wishes(trainer: Running, model: str) -> None:
    with pytest.raises(openai.NotFoundError):
        trainer.other.responses.create(model=model, input="x")
    tool: Any = {"type": "function", "name": "f", "parameters": {}, "strict": False}
    wishes: list[tuple[str, dict[str, Any]]] = [
        ("tools", {"tools": [tool]}),
        ("text.format", {"text": {"format": {"type": "json_object"}}}),
    ]
    for param, fields in wishes:
        with pytest.raises(openai.BadRequestError) as caught:
            trainer.acme.responses.create(model=model, input="x", **fields)
        assert caught.value.param == param
