"""Canaries in every place of a request that carries text: none reaches the upstream, all come back."""

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from e2e_gateway import Gateway, found_in, running_gateway
from e2e_upstream import send_message

NAME = "Ilse Varga"
MAIL = "ilse.varga@corp7.internal"
PHONE = "+1 212-555-0142"
SECRET = "ghp_Zk3Qm8Rt5Vw1Xy7Bc9Df2Gh4Jk6Ln0PaSs"
CARD = 4111111111111111
EACH = (NAME, MAIL, PHONE, SECRET)
ALL = f"Ask {NAME}, {MAIL} or {PHONE}; her token is {SECRET}."
LEAKS = (
    "Ilse",
    "Varga",
    "ilse",
    "varga",
    "corp7",
    "212-555-0142",
    "2125550142",
    "ghp_Zk3",
    str(CARD),
)
USER = {"role": "user", "content": "Go on."}

Fields = dict[str, Any]


def _tool(**function: Any) -> Fields:
    return {"tools": [{"type": "function", "function": {"name": "send_mail", **function}}]}


def _schema(schema: Fields) -> Fields:
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }
    }


def _called(arguments: str, **more: Any) -> Fields:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {
        "messages": [
            USER,
            {"role": "assistant", "content": None, "tool_calls": [{**call, **more}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
        ]
    }


NESTED = json.dumps({"body": json.dumps({"to": list(EACH), "inner": json.dumps({NAME: ALL})})})
CARRIERS: dict[str, Fields] = {
    "content": {"messages": [{"role": "user", "content": ALL}]},
    "system": {"messages": [{"role": "system", "content": ALL}, USER]},
    "developer": {"messages": [{"role": "developer", "content": ALL}, USER]},
    "assistant": {"messages": [USER, {"role": "assistant", "content": ALL}, USER]},
    "refusal": {"messages": [USER, {"role": "assistant", "refusal": ALL}, USER]},
    "reasoning": {
        "messages": [USER, {"role": "assistant", "content": "", "reasoning_content": ALL}]
    },
    "parts": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": t} for t in EACH]}]
    },
    "unknown part": {
        "messages": [{"role": "user", "content": [{"type": "note", "note": {"x": ALL}}]}]
    },
    "message name": {"messages": [{**USER, "name": NAME}, {**USER, "name": MAIL}]},
    "unknown message field": {"messages": [{**USER, "annotations": [{"title": ALL}]}]},
    "message keys": {"messages": [{**USER, "extra": {text: 1 for text in EACH}}]},
    "arguments": _called(json.dumps({"to": NAME, "cc": [MAIL, {"n": PHONE}], "key": SECRET})),
    "arguments named like the protocol": _called(
        json.dumps({k: SECRET for k in ("id", "role", "type", "mode", "model", "format", "detail")})
    ),
    "metadata named like the protocol": {"metadata": {"id": SECRET, "type": PHONE}},
    "defaults named like the protocol": _tool(
        parameters={"default": {"id": SECRET, "mode": SECRET}}
    ),
    "parts named like the protocol": {
        "messages": [{"role": "user", "content": [{"type": "note", "note": {"id": SECRET}}]}]
    },
    "fields named like the protocol": {"x_future": {"id": SECRET, "model": SECRET}},
    "argument keys": _called(json.dumps(dict.fromkeys(EACH, 1))),
    "argument numbers": _called(json.dumps({"card": CARD})),
    "nested arguments": _called(NESTED),
    "escaped arguments": _called('{"to": "\\u0049lse \\u0056arga"}'),
    "broken arguments": _called('{"to": "' + ALL),
    "custom tool": _called("{}", custom={"name": "run", "input": ALL}),
    "function_call": {
        "messages": [
            USER,
            {"role": "assistant", "function_call": {"name": "f", "arguments": NESTED}},
        ]
    },
    "tool result": {
        "messages": [
            *_called("{}")["messages"][:2],
            {"role": "tool", "tool_call_id": "call_1", "content": json.dumps({"found": EACH})},
        ]
    },
    "tool result parts": {
        "messages": [
            *_called("{}")["messages"][:2],
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": ALL}]},
        ]
    },
    "tool ids": {
        "messages": [
            {"role": "user", "content": ALL},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_Varga_1",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_Varga_1", "content": "ok"},
        ]
    },
    "tool description": _tool(description=ALL, parameters={"type": "object", "properties": {}}),
    "tool parameters": _tool(
        parameters={
            "type": "object",
            "description": ALL,
            "properties": {
                "to": {"type": "string", "enum": list(EACH), "default": NAME, "examples": [MAIL]},
                NAME: {"type": "string", "const": SECRET},
                MAIL: {"type": "string", "title": PHONE},
            },
            "required": ["to", NAME, MAIL],
        }
    ),
    "functions": {"functions": [{"name": "send", "description": ALL, "parameters": {}}]},
    "stop": {"stop": list(EACH)},
    "stop string": {"stop": NAME},
    "prediction": {"prediction": {"type": "content", "content": ALL}},
    "prediction parts": {
        "prediction": {"type": "content", "content": [{"type": "text", "text": ALL}]}
    },
    "structured output": _schema(
        {
            "type": "object",
            "description": ALL,
            "properties": {NAME: {"type": "string", "enum": list(EACH)}},
            "required": [NAME],
        }
    ),
    "metadata": {"metadata": {"owner": NAME, MAIL: PHONE, "key": SECRET}},
    "user": {"user": MAIL, "safety_identifier": NAME, "prompt_cache_key": PHONE},
    "logit_bias": {"logit_bias": {NAME: 1, MAIL: -1}},
    "web search": {"web_search_options": {"user_location": {"approximate": {"note": ALL}}}},
    "unknown field": {"x_future": {"deep": [{"note": ALL}, *EACH]}},
    "unknown keys": {"x_future": dict.fromkeys(EACH, True), NAME: 1},
    "unknown numbers": {"x_future": {"card": CARD, "cards": [CARD], "float": float(CARD)}},
    "a text that begins like a data URL": {
        "x_future": f"data:image/png;base64,AAAA {ALL}",
        "messages": [{"role": "user", "content": f"data:image/png;base64,AAAA {ALL}"}],
    },
    "JSON in a text": {"messages": [{"role": "user", "content": json.dumps({"to": EACH})}]},
    "an encoded data URL": {
        "x_future": "data:text/plain;base64," + base64.b64encode(ALL.encode()).decode()
    },
}


def _send(gateway: Gateway, carrier: str, stream: bool = False, **more: Any) -> str:
    body = {
        "model": "test-model",
        "messages": [USER],
        "stream": stream,
        **CARRIERS[carrier],
        **more,
    }
    before = len(gateway.upstream.requests)
    response = gateway.post(body, f"canary-{sum(map(ord, carrier))}-{stream}")
    assert response.status_code == 200, response.text
    (sent,) = gateway.upstream.requests[before:]
    return sent.decode()


@pytest.mark.parametrize("carrier", CARRIERS)
def test_no_canary_leaves(gateway: Gateway, carrier: str) -> None:
    sent = _send(gateway, carrier)
    assert found_in(sent, LEAKS) == [], sent
    coded = base64.b64encode(ALL.encode()).decode()[:60]
    assert coded not in sent


def test_ids_stay_paired(gateway: Gateway) -> None:
    _send(gateway, "tool ids")
    call, result = gateway.upstream.bodies[-1]["messages"][1:]
    assert call["tool_calls"][0]["id"] == result["tool_call_id"]


def test_schemas_stay_consistent(gateway: Gateway) -> None:
    _send(gateway, "tool parameters")
    parameters = gateway.upstream.bodies[-1]["tools"][0]["function"]["parameters"]
    assert set(parameters["required"]) == set(parameters["properties"])
    assert parameters["properties"]["to"]["default"] in parameters["properties"]["to"]["enum"]


IMAGES = {
    "address": f"https://files.example.com/ilse-varga.png?mail={MAIL}",
    "encoded address": "https://files.example.com/x.png?mail=ilse.varga%40corp7.internal&n=Ilse%20Varga",
}


@pytest.mark.parametrize("case", IMAGES)
def test_B74_addresses_of_pictures(
    gateway: Gateway, tmp_path_factory: pytest.TempPathFactory, case: str
) -> None:
    part = {"type": "image_url", "image_url": {"url": IMAGES[case], "detail": "low"}}
    picture = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAKIAABCD="},
    }
    messages = [{"role": "user", "content": [{"type": "text", "text": ALL}, part, picture]}]
    body = {"model": "test-model", "messages": messages}
    before = len(gateway.upstream.requests)
    refused = gateway.post(body, "pictures")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "media_not_allowed")
    assert len(gateway.upstream.requests) == before
    folder = tmp_path_factory.mktemp("pictures")
    with running_gateway(
        folder, detector=gateway.services.detector, policy={"images": "allow"}
    ) as open_one:
        assert open_one.post(body, "pictures").status_code == 200
        sent = open_one.upstream.requests[-1].decode()
        parts = open_one.upstream.bodies[-1]["messages"][0]["content"]
    assert found_in(sent, LEAKS) == [], sent
    assert [p["type"] for p in parts] == ["text", "image_url", "image_url"]
    assert parts[1]["image_url"]["detail"] == "low"
    assert parts[1]["image_url"]["url"].startswith("https://")
    assert parts[2] == picture


# What comes back: the upstream answers with what it was sent, cut in every way.

ODD = 'Haus "Zum \\Hirsch" KG'
LINES = (NAME, MAIL, PHONE, SECRET, "Tadeo Brandt")
Handler = BaseHTTPRequestHandler


def _received(body: Fields) -> list[str]:
    lines: list[str] = body["messages"][0]["content"].splitlines()
    return [line.removeprefix("- ") for line in lines if line.startswith("- ")]


def _document(values: list[str], ascii_only: bool) -> str:
    inner = json.dumps({"to": values, "again": json.dumps({"x": values})}, ensure_ascii=ascii_only)
    return json.dumps(
        {"list": values, "nested": inner, "text": f"For {values[0]}.", "n": 3, "ok": None},
        ensure_ascii=ascii_only,
        indent=1,
    )


def _leaves(value: Any) -> list[str]:
    if isinstance(value, str):
        return _leaves(json.loads(value)) if value.startswith("{") else [value]
    if isinstance(value, dict):
        value = [*value, *value.values()]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else []


def _ask_for(values: tuple[str, ...]) -> list[Fields]:
    lines = "\n".join(f"- {value}" for value in values)
    return [{"role": "user", "content": f"Write to these people:\n{lines}\nThank you."}]


@pytest.mark.parametrize("ascii_only", [True, False], ids=["ASCII", "UTF-8"])
@pytest.mark.parametrize("cut", [1, 2, 3, 7, 10_000])
def test_B62_B67_streamed_arguments_are_restored(
    scripted: Gateway, cut: int, ascii_only: bool
) -> None:
    def script(handler: Handler, body: Fields) -> None:
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "send", "arguments": _document(_received(body), ascii_only)},
        }
        second = {**call, "id": "call_2"}
        send_message(handler, body, {"content": "Calling.", "tool_calls": [call, second]}, cut)

    scripted.upstream.script = script
    values = (*LINES, "Séverine Blanchet")
    arguments = {0: "", 1: ""}
    for chunk in scripted.client().chat.completions.create(
        model="test-model",
        messages=_ask_for(values),
        stream=True,
        extra_headers={"x-penname-session": "arguments"},
    ):
        for call in chunk.choices[0].delta.tool_calls or ():
            arguments[call.index] += (call.function.arguments or "") if call.function else ""
    expected = _leaves(json.loads(_document(list(values), ascii_only)))
    for text in arguments.values():
        assert _leaves(json.loads(text)) == expected
    assert json.loads(arguments[0])["n"] == 3


def test_B62_whole_arguments_are_restored(scripted: Gateway) -> None:
    def script(handler: Handler, body: Fields) -> None:
        arguments = _document(_received(body), True)
        call = {"id": "c", "type": "function", "function": {"name": "send", "arguments": arguments}}
        send_message(handler, body, {"tool_calls": [call]})

    scripted.upstream.script = script
    done = scripted.client().chat.completions.create(
        model="test-model",
        messages=_ask_for(LINES),
        extra_headers={"x-penname-session": "arguments"},
    )
    (call,) = done.choices[0].message.tool_calls or ()
    text = call.function.arguments  # type: ignore[union-attr]
    assert _leaves(json.loads(text)) == _leaves(json.loads(_document(list(LINES), True)))


@pytest.fixture(scope="module")
def odd(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose policy knows an entity with quotation marks and a backslash in its name."""
    with running_gateway(
        tmp_path_factory.mktemp("odd"),
        detector=gateway.services.detector,
        policy={"deny": [{"text": ODD, "type": "ORG"}]},
    ) as running:
        yield running


@pytest.mark.parametrize("fmt", ["json_schema", "json_object", None])
@pytest.mark.parametrize("cut", [0, 1, 3, 10_000])
def test_B66_structured_output_stays_json(odd: Gateway, cut: int, fmt: str | None) -> None:
    """An original with quotation marks is escaped where it is put back."""

    def script(handler: Handler, body: Fields) -> None:
        send_message(handler, body, {"content": " " + _document(_received(body), False)}, cut or 3)

    odd.upstream.script = script
    extra: Fields = {}
    if fmt == "json_schema":
        extra = _schema({"type": "object"})
    elif fmt:
        extra = {"response_format": {"type": fmt}}
    values = (*LINES, ODD)
    text = odd.ask(_ask_for(values), "structured", bool(cut), **extra)
    assert "Hirsch" not in odd.upstream.requests[-1].decode()
    assert _leaves(json.loads(text)) == _leaves(json.loads(_document(list(values), False)))


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_plain_text_gets_the_same_name_as_it_is(odd: Gateway, cut: int) -> None:
    def script(handler: Handler, body: Fields) -> None:
        send_message(handler, body, {"content": f"Dear {_received(body)[0]}!"}, cut or 3)

    odd.upstream.script = script
    assert odd.ask(_ask_for((ODD,)), "structured", bool(cut)) == f"Dear {ODD}!"


def test_a_call_keeps_the_name_of_its_function(scripted: Gateway) -> None:
    """A function may be called like somebody's substitute; it is still that function."""

    def script(handler: Handler, body: Fields) -> None:
        name = _received(body)[0].split()[0].lower()
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
        send_message(handler, body, {"tool_calls": [call]})

    scripted.upstream.script = script
    names = []
    for stream in (False, True):
        scripted.post(
            {"model": "test-model", "messages": _ask_for((NAME,)), "stream": stream}, "function"
        )
        given = _received(scripted.upstream.bodies[-1])[0].split()[0].lower()
        response = scripted.post(
            {"model": "test-model", "messages": _ask_for((NAME,)), "stream": stream}, "function"
        )
        names.append(f'"name":"{given}"' in response.text)
    assert names == [True, True]
