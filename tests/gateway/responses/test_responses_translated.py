"""A Responses request as a chat request: what is translated, and what is refused with its field."""

import json
from typing import Any

import orjson
import pytest

from gateway.api.responses.items import check_calls, read_input
from gateway.api.responses.schema import UNSUPPORTED, ResponsesRequest, parse_responses
from gateway.api.responses.translate import chat_body
from gateway.errors import ApiError

CANARY = "Zsuzsanna Quillfeather"
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}


def parse(**fields: Any) -> ResponsesRequest:
    return parse_responses(orjson.dumps({"model": "m", "input": "Hello", **fields}))


def chat(**fields: Any) -> dict[str, Any]:
    request = parse(**fields)
    return chat_body(request, read_input(request.input), None)


def test_the_shortest_request() -> None:
    assert chat() == {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def test_every_field_has_its_counterpart() -> None:
    schema = {"type": "object", "properties": {}}
    body = chat(
        instructions="Be brief.",
        stream=True,
        stream_options={"include_obfuscation": False},
        temperature=0.5,
        top_p=1,
        max_output_tokens=7,
        tools=[{**TOOL, "description": None, "defer_loading": None}],
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=False,
        text={
            "format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True},
            "verbosity": "low",
        },
        reasoning={"effort": "low", "summary": None},
        metadata={"topic": "x", "penname_session": "s-1"},
        user="u",
        safety_identifier="i",
        prompt_cache_key="k",
        service_tier="default",
        store=True,
        truncation="disabled",
        background=False,
        include=["reasoning.encrypted_content"],
    )
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "top_p": 1.0,
        "max_completion_tokens": 7,
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "parameters": {"type": "object"}, "strict": True},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": schema, "strict": True},
        },
        "verbosity": "low",
        "reasoning_effort": "low",
        "metadata": {"penname_session": "s-1"},
        "user": "u",
        "safety_identifier": "i",
        "prompt_cache_key": "k",
        "service_tier": "default",
    }


def test_items_become_messages() -> None:
    spoken = {"type": "output_text", "text": "Calling.", "annotations": [], "logprobs": []}
    items = [
        {"role": "developer", "content": "d"},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                {"type": "input_file", "file_data": "data:x;base64,AA", "filename": "x.pdf"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "file_search_call", "id": "fs_1", "queries": [], "status": "completed"},
        {"id": "msg_1", "type": "message", "role": "assistant", "content": [spoken]},
        CALL,
        {**CALL, "call_id": "c2", "id": "fc_2", "status": "completed"},
        RESULT,
        {**RESULT, "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    ]
    call = {"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    assert chat(input=items)["messages"] == [
        {"role": "developer", "content": "d"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,AAAA", "detail": "auto"},
                },
                {
                    "type": "file",
                    "file": {"file_data": "data:x;base64,AA", "filename": "x.pdf"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": "Calling.",
            "tool_calls": [{"id": "c1", **call}, {"id": "c2", **call}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "", "refusal": "No."},
    ]


def test_nothing_stands_between_calls_and_their_outputs() -> None:
    spoken = [{"role": "assistant", "content": text} for text in ("Calling", " now.")]
    refused = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    messages = chat(input=[spoken[0], CALL, spoken[1], refused, RESULT, spoken[0]])["messages"]
    assert [m["role"] for m in messages] == ["assistant", "tool", "assistant"]
    assert (messages[0]["content"], messages[0]["refusal"]) == ("Calling now.", "No.")
    assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"]


def test_file_search_is_the_gateways_own_retrieval() -> None:
    search = {"type": "file_search", "vector_store_ids": ["vs_1", "vs_2"], "max_num_results": 2}
    body = chat(tools=[search], tool_choice="required", penname={"vector_store_ids": ["vs_2"]})
    assert body["penname"] == {"vector_store_ids": ["vs_2", "vs_1"], "max_num_results": 2}
    assert "tools" not in body and "tool_choice" not in body
    both = chat(tools=[search, TOOL], tool_choice={"type": "file_search"})
    assert len(both["tools"]) == 1 and "tool_choice" not in both


def test_a_session_to_continue_is_named_here() -> None:
    request = parse(penname={"vector_store_ids": ["vs_1"]})
    body = chat_body(request, read_input(request.input), "auto-1")
    assert body["penname"] == {"vector_store_ids": ["vs_1"], "session": "auto-1"}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": None}, "model"),
    "no input": ({"input": None}, "input"),
    "empty input": ({"input": []}, "input"),
    "only reasoning": ({"input": [{"type": "reasoning", "id": "x", "summary": []}]}, "input"),
    "unknown item": ({"input": [{"type": CANARY}]}, "input[0].type"),
    "no type": ({"input": [{"content": CANARY}]}, "input[0].type"),
    "reference": ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    "computer": ({"input": [{"type": "computer_call", "x": CANARY}]}, "input[0].type"),
    "role": ({"input": [{"role": CANARY, "content": "x"}]}, "input[0].role"),
    "content": ({"input": [{"role": "user", "content": {CANARY: 1}}]}, "input[0].content"),
    "part": (
        {"input": [{"role": "user", "content": [{"type": "input_audio", "x": CANARY}]}]},
        "input[0].content[0].type",
    ),
    "part's type": (
        {"input": [{"role": "user", "content": [{"type": {CANARY: 1}}]}]},
        "input[0].content[0].type",
    ),
    "part of another role": (
        {"input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]},
        "input[0].content[0].type",
    ),
    "part's text": (
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": [CANARY]}]}]},
        "input[0].content[0].text",
    ),
    "picture by id": (
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": CANARY}]}]},
        "input[0].content[0].file_id",
    ),
    "file by URL": (
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_url": CANARY}]}]},
        "input[0].content[0].file_url",
    ),
    "arguments": ({"input": [{**CALL, "arguments": {CANARY: 1}}]}, "input[0].arguments"),
    "unknown field": ({CANARY: 1}, "body"),
    "metadata": ({"metadata": {CANARY: 1}}, "metadata"),
    "long metadata": ({"metadata": {CANARY: "x" * 513}}, "metadata"),
    "temperature": ({"temperature": 3}, "temperature"),
    "max_output_tokens": ({"max_output_tokens": 0}, "max_output_tokens"),
    "instructions": ({"instructions": [{"role": "user", "content": CANARY}]}, "instructions"),
    "web search": ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    "mcp": ({"tools": [TOOL, {"type": "mcp", "server_url": CANARY}]}, "tools[1].type"),
    "code": ({"tools": [{"type": "code_interpreter"}]}, "tools[0].type"),
    "a tool's type": ({"tools": [{"type": {CANARY: 1}}]}, "tools[0].type"),
    "a tool's field": ({"tools": [{**TOOL, CANARY: 1}]}, "tools[0]"),
    "a tool's schema": ({"tools": [{**TOOL, "parameters": CANARY}]}, "tools[0].parameters"),
    "a tool's name": ({"tools": [{**TOOL, "name": CANARY}]}, "tools[0].name"),
    "a format's name": (
        {"text": {"format": {"type": "json_schema", "name": f"a {CANARY}", "schema": {}}}},
        "text.format.name",
    ),
    "filters": (
        {"tools": [{"type": "file_search", "vector_store_ids": ["x"], "filters": {"key": CANARY}}]},
        "tools[0].filters",
    ),
    "tool_choice": ({"tools": [TOOL], "tool_choice": CANARY}, "tool_choice"),
    "another tool": (
        {"tools": [TOOL], "tool_choice": {"type": "function", "name": "g"}},
        "tool_choice",
    ),
    "allowed tools": (
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
        "tool_choice.type",
    ),
    "no schema": ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
    "format": ({"text": {"format": {"type": CANARY}}}, "text.format.type"),
    "verbosity": ({"text": {"verbosity": CANARY}}, "text.verbosity"),
    "summary": ({"reasoning": {"effort": "low", "summary": "auto"}}, "reasoning.summary"),
    "effort": ({"reasoning": {"effort": CANARY}}, "reasoning.effort"),
    "truncation": ({"truncation": "auto"}, "truncation"),
    "obfuscation": (
        {"stream_options": {"include_obfuscation": True}},
        "stream_options.include_obfuscation",
    ),
    "include": ({"include": ["message.output_text.logprobs"]}, "include"),
    "unknown include": ({"include": [CANARY]}, "include"),
    "penname": ({"penname": {CANARY: 1}}, "penname"),
    "store": ({"store": CANARY}, "store"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_can_not_be_honoured_is_told_with_its_field(case: str) -> None:
    fields, param = BAD[case]
    with pytest.raises(ApiError) as caught:
        chat(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)
    assert CANARY not in json.dumps(caught.value.body())


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_openai_has_and_we_do_not(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(**{name: {"id": CANARY}})
    assert (caught.value.param, caught.value.code) == (name, "unsupported_parameter")
    parse(**{name: None})


@pytest.mark.parametrize(
    "items",
    [
        [CALL],
        [RESULT],
        [CALL, RESULT, {**RESULT, "call_id": "c2"}],
        [CALL, RESULT, CALL],  # an id that a server used again
    ],
)
def test_calls_and_outputs_come_in_pairs(items: list[Any]) -> None:
    with pytest.raises(ApiError) as caught:
        check_calls(read_input(items))
    assert caught.value.param == "input"
    check_calls(read_input([CALL, RESULT]))


@pytest.mark.parametrize(
    ("own", "tools", "sent"),
    [
        ({}, [None], {}),
        ({}, [5, 3], {"max_num_results": 3}),
        ({"max_num_results": 2}, [5, None], {"max_num_results": 2}),
        ({"max_num_results": 9}, [5], {"max_num_results": 5}),
        ({"max_num_results": 9}, [None], {"max_num_results": 9}),
        ({"max_num_results": "9"}, [5], {"max_num_results": "9"}),
    ],
)
def test_the_lowest_number_of_results_counts(
    own: dict[str, Any], tools: list[int | None], sent: dict[str, Any]
) -> None:
    search = {"type": "file_search", "vector_store_ids": ["vs"]}
    given = [{**search, **({"max_num_results": n} if n else {})} for n in tools]
    told = chat(tools=given, penname=own)["penname"]
    assert told == {"vector_store_ids": ["vs"], **sent}
