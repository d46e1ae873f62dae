"""A wrong type in every place of a request: a told error or a body that can be sent, no third way."""

import copy
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from gateway.api.responses.items import check_calls, read_input
from gateway.api.responses.schema import parse_responses
from gateway.api.responses.translate import chat_body
from gateway.errors import ApiError
from gateway.request import parse_chat

CANARY = "Ilse Varga"
REQUEST: dict[str, Any] = {
    "model": "m",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "Hm."},
                {"type": "refusal", "refusal": "No."},
            ],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}],
        },
        {"type": "reasoning", "id": "r"},
        {"role": "user", "content": [{"type": "input_file", "file_data": "data:x;base64,AA"}]},
    ],
    "instructions": "Be brief.",
    "stream": False,
    "stream_options": {"include_obfuscation": False},
    "temperature": 0.5,
    "top_p": 0.5,
    "max_output_tokens": 5,
    "tools": [
        {"type": "function", "name": "f", "parameters": {"properties": {"a": {"enum": ["x"]}}}},
        {"type": "file_search", "vector_store_ids": ["vs"], "max_num_results": 3},
    ],
    "tool_choice": {"type": "function", "name": "f"},
    "parallel_tool_calls": True,
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
    "reasoning": {"effort": "low", "summary": None},
    "metadata": {"a": "b", "penname_session": "s"},
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "service_tier": "auto",
    "store": False,
    "include": ["file_search_call.results"],
    "penname": {"session": "s", "vector_store_ids": ["vs"], "max_num_results": 3},
    "previous_response_id": None,
    "truncation": "disabled",
    "background": None,
}
DEEP: Any = {}
for _ in range(200):
    DEEP = {"a": DEEP}
WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 1e300, 2**64 - 1, "", CANARY, "a\u0000b"),
    *([], [CANARY], [[CANARY]], [None], {}, {CANARY: CANARY}, {"a": {CANARY: [CANARY]}}, DEEP),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children: Any = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield from _places(child, (*path, key))


def _sent(body: Any) -> dict[str, Any]:
    """Translate a body as the route does, and read the result as a chat request."""
    request = parse_responses(orjson.dumps(body))
    items = read_input(request.input)
    check_calls(items)
    return parse_chat(orjson.dumps(chat_body(request, items, None)))


def test_the_request_itself_is_right() -> None:
    assert len(_sent(REQUEST)["messages"]) == 5


@pytest.mark.parametrize("field", REQUEST)
def test_a_wrong_value_is_told_or_harmless(field: str) -> None:
    for path in _places({field: REQUEST[field]}):
        for value in WRONG:
            body = copy.deepcopy(REQUEST)
            node: Any = body
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
            try:
                _sent(body)
            except ApiError as error:
                assert error.status == 400 and error.message
                assert "Ilse" not in str(error.body()), path
