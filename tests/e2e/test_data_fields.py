"""Names and numbers among data: keys, columns and calls tell what they are."""

import json
import re
from typing import Any

import pytest
from e2e_gateway import Gateway, found_in
from e2e_upstream import delta_frame, open_stream, send_message

VALUES = {"last_name": "Park", "surname": "Young", "mrn": "00482913", "phone": 4155550123}


def _call(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_the_key_of_an_argument_tells_what_it_is(gateway: Gateway) -> None:
    messages = [
        {"role": "user", "content": "Book it."},
        {"role": "assistant", "content": None, "tool_calls": [_call("book", json.dumps(VALUES))]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    gateway.ask(messages, "fields-arguments")
    assert (
        found_in(gateway.upstream.requests[-1], ("Park", "Young", "00482913", "4155550123")) == []
    )
    sent = json.loads(
        gateway.upstream.bodies[-1]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    )
    assert list(sent) == list(VALUES)
    assert isinstance(sent["phone"], int)


@pytest.mark.parametrize(
    "text",
    [
        '{"guest": {"lastName": "Park", "firstName": "Will"}}',
        "UPDATE p SET note='x' WHERE last_name = 'Park' AND first_name = 'Will';",
        "INSERT INTO p (first_name, last_name) VALUES ('Will', 'Park');",
        "first_name,last_name,age\nWill,Park,4\n",
        "<p><first_name>Will</first_name><last_name>Park</last_name></p>",
    ],
)
def test_everyday_words_in_fields_of_names_do_not_leave(gateway: Gateway, text: str) -> None:
    assert gateway.ask(text, f"fields-{len(text)}") == f"You wrote: {text} Thank you."
    assert found_in(gateway.upstream.requests[-1], ("Will", "Park")) == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("github_search", "Post to Slack that the GitHub release is out."),
        ("getKasselWeather", "What is the weather in Kassel?"),
        ("ask-ilse-varga", "Ask Ilse Varga when she is free."),
    ],
)
def test_a_function_may_be_called_after_what_the_user_names(
    scripted: Gateway, name: str, text: str, stream: bool
) -> None:
    def script(handler: Any, body: dict[str, Any]) -> None:
        sent = body["tools"][0]["function"]["name"]
        content = body["messages"][-1]["content"]
        send_message(handler, body, {"tool_calls": [_call(sent, json.dumps({"text": content}))]})

    scripted.upstream.script = script
    tool = {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    body = {
        "model": "test-model",
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": None, "tool_calls": [_call(name, "{}")]},
            {"role": "tool", "tool_call_id": "c1", "content": "none"},
            {"role": "assistant", "content": None, "function_call": _call(name, "{}")["function"]},
            {"role": "user", "content": text},
        ],
        "tools": [tool],
        "tool_choice": {"type": "function", "function": {"name": name}},
        "stream": stream,
    }
    response = scripted.post(body, f"function-{name}")
    assert response.status_code == 200, response.text
    assert f'"name":"{name}"' in response.text
    sent = scripted.upstream.bodies[-1]
    outbound = sent["tools"][0]["function"]["name"]
    assert outbound != name
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", outbound)
    assert sent["tool_choice"]["function"]["name"] == outbound
    assert sent["messages"][1]["tool_calls"][0]["function"]["name"] == outbound
    assert sent["messages"][3]["function_call"]["name"] == outbound
    assert found_in(scripted.upstream.requests[-1], ("GitHub", "github", "Kassel", "Varga")) == []


def test_a_document_called_after_somebody(gateway: Gateway) -> None:
    text = "Open files/Varga_Ilse_contract.docx and CV-Ilse-Varga.pdf please."
    assert gateway.ask(text, "fields-document") == f"You wrote: {text} Thank you."
    assert found_in(gateway.upstream.requests[-1], ("Ilse", "Varga")) == []


@pytest.mark.parametrize("functions", [7, "x", {"name": "f"}, [5, None, {"name": ["a"]}]])
def test_functions_of_no_shape_are_the_upstreams_to_refuse(
    gateway: Gateway, functions: Any
) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    body = {"model": "test-model", "messages": messages, "functions": functions}
    assert gateway.post(body, "function-shape").status_code == 200


def _function(name: str, kind: str = "function") -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


def test_long_names_stay_apart_and_in_step(scripted: Gateway) -> None:
    names = [f"ask_lu_ho_{'x' * 53}{end}" for end in "ab"]
    calls = [{**_call(name, "{}"), "id": name[-1]} for name in names]

    def script(handler: Any, body: dict[str, Any]) -> None:
        send_message(handler, body, {"tool_calls": body["messages"][1]["tool_calls"]})

    scripted.upstream.script = script
    body = {
        "model": "test-model",
        "messages": [
            {"role": "user", "content": "Ask Lu Ho-Hollingsworth-Featherstonehaugh, Lu Ho."},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": n[-1], "name": n, "content": "ok"} for n in names),
        ],
        "tools": [_function(name) for name in names],
    }
    response = scripted.post(body, "function-long")
    assert response.status_code == 200, response.text
    message = response.json()["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == names
    sent = scripted.upstream.bodies[-1]
    outbound = [tool["function"]["name"] for tool in sent["tools"]]
    assert len({*outbound, *names}) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in outbound)
    assert [m["name"] for m in sent["messages"][2:]] == outbound


def test_a_long_custom_tool_comes_back_under_its_name(scripted: Gateway) -> None:
    name = f"ask_lu_ho_{'x' * 54}"

    def script(handler: Any, body: dict[str, Any]) -> None:
        called = {"name": body["tools"][0]["custom"]["name"], "input": "free?"}
        send_message(
            handler, body, {"tool_calls": [{"id": "c1", "type": "custom", "custom": called}]}
        )

    scripted.upstream.script = script
    messages = [{"role": "user", "content": "Ask Lu Ho-Hollingsworth-Featherstonehaugh, Lu Ho."}]
    body = {"model": "test-model", "messages": messages, "tools": [_function(name, "custom")]}
    answer = scripted.post(body, "function-custom").json()["choices"][0]["message"]
    assert answer["tool_calls"][0]["custom"] == {"name": name, "input": "free?"}
    assert scripted.upstream.bodies[-1]["tools"][0]["custom"]["name"] != name


@pytest.mark.parametrize("called", [0, 1, None])
def test_a_name_in_pieces(scripted: Gateway, called: int | None) -> None:
    names = ["ask_ilse_varga", "forecast"]

    def script(handler: Any, body: dict[str, Any]) -> None:
        sent = [tool["function"]["name"] for tool in body["tools"]]
        whole = sent[0][:8] if called is None else sent[called]
        head = {"index": 0, "id": "c1", "type": "function", "function": {"arguments": ""}}
        pieces = [{"index": 0, "function": {"name": piece}} for piece in (whole[:5], whole[5:])]
        end = {"index": 0, "function": {"arguments": "{}"}}
        deltas = [delta_frame({"tool_calls": [item]}) for item in (head, *pieces, end)]
        open_stream(handler, *deltas, delta_frame({}, "tool_calls"), b"data: [DONE]\n\n")

    scripted.upstream.script = script
    body = {
        "model": "test-model",
        "messages": [{"role": "user", "content": "Ask Ilse Varga when she is free."}],
        "tools": [_function(name) for name in names],
        "stream": True,
    }
    response = scripted.post(body, "function-pieces")
    assert response.text.endswith("data: [DONE]\n\n")
    sent = scripted.upstream.bodies[-1]["tools"][0]["function"]["name"]
    name = "".join(re.findall(r'"name":"([^"]*)"', response.text))
    assert name == (sent[:8] if called is None else names[called])


def test_a_function_does_not_take_the_name_of_another(scripted: Gateway) -> None:
    scripted.ask("Ask Ilse Varga.", "function-taken")
    sent = scripted.upstream.bodies[-1]["messages"][0]["content"]
    _, given, family, *_ = sent.strip(".").split()
    names = ["ask_ilse_varga", f"ask_{given}_{family}".lower()]

    def script(handler: Any, body: dict[str, Any]) -> None:
        calls = [_call(tool["function"]["name"], "{}") for tool in body["tools"]]
        send_message(handler, body, {"tool_calls": calls})

    scripted.upstream.script = script
    body = {
        "model": "test-model",
        "messages": [{"role": "user", "content": "Ask Ilse Varga."}],
        "tools": [_function(name) for name in names],
    }
    answer = scripted.post(body, "function-taken").json()["choices"][0]["message"]
    assert [call["function"]["name"] for call in answer["tool_calls"]] == names
