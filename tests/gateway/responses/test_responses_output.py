"""Chat chunks as items and events: however they are cut, the items are the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from connectors.base import UpstreamError
from gateway.api.responses.objects import failed, finished, opened, shown
from gateway.api.responses.output import Output
from gateway.api.responses.schema import ResponsesRequest

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
REQUEST = ResponsesRequest.model_validate({"model": "m", "input": "x"})
OPENED = opened(REQUEST, "resp_1", 1.0, "m")


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int, text: str, **more: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": index, "function": {"arguments": text}, **more}]})


def first(index: int) -> dict[str, Any]:
    function = {"name": f"f{index}", "arguments": ""}
    return chunk({"tool_calls": [{"index": index, "id": f"c{index}", "function": function}]})


def run(chunks: list[dict[str, Any]], search: Any = None) -> tuple[Output, list[dict[str, Any]]]:
    output = Output(search)
    events = list(output.begin())
    for piece in chunks:
        events += output.feed(piece)
    events += output.close()
    for number, event in enumerate(events):
        EVENT.validate_python({**event, "sequence_number": number})
    return output, events


def simple(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in item.items() if k != "id"} for item in items]


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(p % (len(text) + 1) for p in places), len(text)]
    return [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]


@given(
    content=st.text(max_size=30),
    refusal=st.text(max_size=10),
    arguments=st.lists(st.text(max_size=20), max_size=3),
    places=st.lists(st.integers(0, 99), max_size=6),
)
def test_every_cut_gives_the_items_of_the_whole(
    content: str, refusal: str, arguments: list[str], places: list[int]
) -> None:
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": f"f{i}", "arguments": text}}
        for i, text in enumerate(arguments)
    ]
    message = {"role": "assistant", "content": content, "refusal": refusal, "tool_calls": calls}
    whole = Output()
    whole.feed({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    list(whole.close())

    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"content": piece}) for piece in cut(content, places)]
    chunks += [chunk({"refusal": piece}) for piece in cut(refusal, places)]
    chunks += [first(i) for i in range(len(arguments))]
    chunks += [call(i, piece) for i, text in enumerate(arguments) for piece in cut(text, places)]
    output, events = run([*chunks, chunk({}, "stop")])
    assert simple(output.items()) == simple(whole.items())
    agree(output, events)


def agree(output: Output, events: list[dict[str, Any]]) -> None:
    """The four places where a text stands hold the same."""
    for index, item in enumerate(output.items()):
        own = [e for e in events if e.get("output_index") == index]
        assert own[0]["type"] == "response.output_item.added"
        assert own[-1] == {
            "type": "response.output_item.done",
            "output_index": index,
            "item": item,
        }
        assert {e.get("item_id", item["id"]) for e in own} == {item["id"]}
        if item["type"] == "function_call":
            (done,) = [e for e in own if e["type"] == "response.function_call_arguments.done"]
            told = "".join(e["delta"] for e in own if "delta" in e)
            assert told == done["arguments"] == item["arguments"]
            continue
        for number, part in enumerate(item["content"]):
            mine = [e for e in own if e.get("content_index") == number]
            text = part.get("text", part.get("refusal"))
            assert "".join(e["delta"] for e in mine if "delta" in e) == text
            assert mine[0]["type"] == "response.content_part.added"
            assert mine[-2].get("text", mine[-2].get("refusal")) == text
            assert mine[-1] == {
                **mine[0],
                "type": "response.content_part.done",
                "part": part,
            }


def test_an_answer_of_nothing_is_an_empty_message() -> None:
    output, events = run([chunk({"role": "assistant", "content": None}), chunk({}, "stop")])
    (item,) = output.items()
    assert item["content"][0]["text"] == ""
    agree(output, events)


def test_interleaved_calls_keep_their_places() -> None:
    output, events = run([first(0), first(1), call(1, "b"), call(0, "a"), call(1, "b")])
    assert [i["arguments"] for i in output.items()] == ["a", "bb"]
    assert [i["call_id"] for i in output.items()] == ["c0", "c1"]
    agree(output, events)


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        (None, "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_finish_reasons(finish: str | None, status: str, reason: str | None) -> None:
    output, _ = run([chunk({"content": "Hello"}), chunk({}, finish)])
    done = finished(OPENED, output, 2.0)
    assert (done["status"], done["output"][0]["status"]) == (status, status)
    assert done["incomplete_details"] == ({"reason": reason} if reason else None)
    assert done["completed_at"] == (2 if reason is None else None)


def test_usage_is_renamed() -> None:
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "total_tokens": 8,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    output, _ = run([chunk({"content": "x"}), {"choices": [], "usage": usage}])
    assert finished(OPENED, output, 2.0)["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 8,
    }
    for odd in (None, {}, [], "x"):
        output, _ = run([{"choices": [], "usage": odd}])
        assert finished(OPENED, output, 2.0)["usage"] is None
    output, _ = run([{"choices": [], "usage": {"prompt_tokens": "5", "total_tokens": True}}])
    assert finished(OPENED, output, 2.0)["usage"]["total_tokens"] == 0


@pytest.mark.parametrize(
    "delta",
    [
        {"content": 5},
        {"content": ["x"]},
        {"refusal": {}},
        {"tool_calls": [5]},
        {"tool_calls": [{"index": 0}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]},
        {"tool_calls": [{"index": 0, "function": {"name": 3}}]},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": {}}}]},
        {"tool_calls": [{"index": [], "function": {"name": "f"}}]},
        {"tool_calls": 7},
    ],
)
def test_deltas_of_another_shape_are_malformed(delta: dict[str, Any]) -> None:
    with pytest.raises(UpstreamError, match="malformed"):
        Output().feed(chunk(delta))


def test_a_failed_response_keeps_what_was_said() -> None:
    output = Output()
    output.feed(chunk({"content": "Hello"}))
    done = failed(OPENED, output, "server_error", "The provider failed.")
    assert done["status"] == "failed" and done["error"]["code"] == "server_error"
    assert done["output"][0]["content"][0]["text"] == "Hello"
    assert done["output"][0]["status"] == "incomplete"


def test_results_of_a_search_are_shown_on_demand() -> None:
    search = {
        "id": "fs_1",
        "type": "file_search_call",
        "status": "completed",
        "queries": ["q"],
        "results": [{"file_id": "f", "filename": "n", "score": 0.5, "text": "t"}],
    }
    output, events = run([chunk({"content": "Hello"})], search)
    assert [i["type"] for i in output.items()] == ["file_search_call", "message"]
    assert [e["type"].rsplit(".", 1)[1] for e in events[:5]] == [
        "added",
        "in_progress",
        "searching",
        "completed",
        "done",
    ]
    done = finished(OPENED, output, 2.0)
    assert shown(done, frozenset())["output"][0]["results"] is None
    assert shown(done, frozenset(["file_search_call.results"])) == done
