"""Answers of servers that keep OpenAI's interface in their own way: nothing of them gets lost or mixed."""

from typing import Any

import orjson
import pytest

from connectors.base import UpstreamError
from gateway.api.responses.objects import finished, opened
from gateway.api.responses.output import Output
from gateway.api.responses.schema import ResponsesRequest
from gateway.respond import ChunkRestorer
from privacy.restoration import Restorer

OPENED = opened(ResponsesRequest.model_validate({"model": "m", "input": "x"}), "resp_1", 1.0, "m")


def _chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **more}]}


def _whole(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, **more}]}


def _both(given: dict[str, Any], **more: Any) -> list[list[dict[str, Any]]]:
    """Return the items of an answer told whole and told as one delta, through the restorer."""
    out = []
    for chunks in (
        [_whole(given, **more)],
        ChunkRestorer(Restorer(()), "m").feed(_chunk(given, **more)),
    ):
        output = Output()
        for chunk in chunks:
            output.feed(chunk)
        list(output.close())
        out.append(output.items())
    return out


def _call(name: str, id: str, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": f'{{"of": "{name}"}}'}
    return {"id": id, "type": "function", "function": function, **more}


@pytest.mark.parametrize("index", [{"index": 0}, {"index": None}, {}])
def test_two_calls_are_two_whatever_their_index(index: dict[str, Any]) -> None:
    for items in _both({"tool_calls": [_call("f", "a", **index), _call("g", "b", **index)]}):
        told = [(i["call_id"], i["name"], i["arguments"]) for i in items]
        assert told == [("a", "f", '{"of": "f"}'), ("b", "g", '{"of": "g"}')]


def test_calls_of_one_index_follow_each_other() -> None:
    output = Output()
    for piece in (
        _call("f", "a", index=0),
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": " "}},
        _call("g", "b", index=0),
        {"index": 0, "function": {"arguments": " "}},
        {"index": 0, "id": "other", "function": {"arguments": " "}},
    ):
        output.feed(_chunk({"tool_calls": [piece]}))
    found = [(item["call_id"], item["arguments"]) for item in output.items()]
    assert found == [("a", '{"of": "f"} '), ("b", '{"of": "g"}  ')]


def test_a_call_in_the_older_field() -> None:
    given = {"content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}}
    for items in _both(given, finish_reason="function_call"):
        (item,) = items
        assert (item["type"], item["name"], item["arguments"]) == (
            "function_call",
            "f",
            '{"a": 1}',
        )


def test_a_content_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    texts = [{"type": "text", "text": text} for text in ("Hello ", "there")]
    for items in _both({"content": [thought, *texts]}):
        assert items[0]["content"][0]["text"] == "Hello there"
    with pytest.raises(UpstreamError):
        Output().feed(_whole({"content": [{"type": "text", "text": 5}]}))


def test_choices_without_an_index_are_not_mixed() -> None:
    output = Output()
    output.feed({"choices": [{"message": {"content": text}} for text in ("A", "B")]})
    assert output.items()[0]["content"][0]["text"] == "A"
    with pytest.raises(UpstreamError):
        Output().feed({"choices": [{"index": "0", "message": {"content": "A"}}]})


@pytest.mark.parametrize("reason", [{"a": 1}, ["stop"], 5])
def test_a_finish_reason_is_a_text(reason: Any) -> None:
    for told in (_whole({"content": "x"}, finish_reason=reason), _chunk({}, finish_reason=reason)):
        with pytest.raises(UpstreamError, match="malformed"):
            Output().feed(told)


@pytest.mark.parametrize("number", [2**64 - 1, 2**63, -5, 1e30, True, "5", None, [], 2**52 + 1])
def test_usage_that_can_not_be_is_not_told(number: Any) -> None:
    output = Output()
    details = {"reasoning_tokens": number}
    output.feed(
        {
            **_whole({"content": "x"}),
            "usage": {
                "prompt_tokens": number,
                "completion_tokens": number,
                "completion_tokens_details": details,
            },
        }
    )
    usage = orjson.loads(orjson.dumps(finished(OPENED, output, 2.0)))["usage"]
    assert usage["input_tokens"] == usage["output_tokens"] == usage["total_tokens"] == 0
