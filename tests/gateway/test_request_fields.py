"""Fields that are checked before anything is sent, and what is told of a provider's refusal."""

from typing import Any

import orjson
import pytest

from connectors.base import UpstreamError
from gateway.api.chat.service import api_error
from gateway.errors import ApiError
from gateway.request import parse_chat
from policies.loader import load_policy


def body(**fields: Any) -> bytes:
    return orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": "hot"},
        {"temperature": 2.5},
        {"max_tokens": -5},
        {"max_completion_tokens": 0},
        {"top_p": 7},
        {"presence_penalty": True},
        {"frequency_penalty": -3},
        {"seed": "now"},
    ],
)
def test_numbers_of_openai_are_checked(fields: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        parse_chat(body(**fields))
    (name,) = fields
    assert (caught.value.status, caught.value.param) == (400, name)
    assert "hot" not in caught.value.message and "now" not in caught.value.message


def test_numbers_that_openai_takes_pass() -> None:
    fields = {"temperature": 1, "max_tokens": 5, "top_p": 0.5, "seed": -1, "presence_penalty": None}
    assert parse_chat(body(**fields)).items() >= fields.items()


def test_an_unknown_field_of_the_extension_names_the_known_ones() -> None:
    with pytest.raises(ApiError, match="max_num_results, session, vector_store_ids") as caught:
        parse_chat(body(penname={"vector_stores": ["vs_1"]}))
    assert (caught.value.status, caught.value.param) == (400, "penname")
    known = {"session": "s", "vector_store_ids": ["vs_1"]}
    assert parse_chat(body(penname=known))["penname"] == known


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_told_as_one(status: int) -> None:
    assert "check api_key in model_list" in api_error(UpstreamError("rejected", status)).message
    assert "api_key" not in api_error(UpstreamError("rejected", 422)).message


def test_a_refusal_of_this_side_is_told_in_its_own_words() -> None:
    told = api_error(UpstreamError("rejected", 400, reason="Leave out tools."))
    assert (told.status, told.message) == (400, "Leave out tools.")


@pytest.mark.parametrize("name", ["balanced", "strict"])
def test_more_than_one_chunk_is_retrieved_by_default(name: str) -> None:
    assert load_policy(name).retrieval.top_k == 3
