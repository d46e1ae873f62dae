"""Canaries in every place of a Responses request: none leaves, all come back, nothing is quoted."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from e2e_gateway import Gateway, found_in, kept_log, running_gateway
from e2e_upstream import open_stream, send, send_message
from openai import BadRequestError, NotFoundError, OpenAI

from gateway.api.responses import routes
from store.errors import StoreUnavailable

Handler = BaseHTTPRequestHandler
Fields = dict[str, Any]
NAME, MAIL, PHONE = "Ilse Varga", "ilse.varga@corp7.internal", "+1 212-555-0142"
SECRET = "ghp_Zk3Qm8Rt5Vw1Xy7Bc9Df2Gh4Jk6Ln0PaSs"
EACH = (NAME, MAIL, PHONE, SECRET)
ALL = f"Ask {NAME}, {MAIL} or {PHONE}; her token is {SECRET}."
LEAKS = ("Ilse", "Varga", "ilse", "varga", "corp7", "212-555-0142", "2125550142", "ghp_Zk3")
USER = {"role": "user", "content": "Go on."}


def _call(arguments: str, output: Any = "ok", call_id: str = "call_1", **more: Any) -> Fields:
    call = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": arguments}
    result = {"type": "function_call_output", "call_id": call_id, "output": output}
    return {"input": [USER, {**call, **more}, result]}


def _tool(**function: Any) -> Fields:
    return {"tools": [{"type": "function", "name": "send_mail", **function}]}


def _format(**more: Any) -> Fields:
    return {"text": {"format": {"type": "json_schema", "name": "answer", **more}}}


SCHEMA = {
    "type": "object",
    "description": ALL,
    "properties": {
        "to": {"type": "string", "enum": list(EACH), "default": NAME, "examples": [MAIL]},
        NAME: {"type": "string", "const": SECRET},
    },
    "required": ["to", NAME],
}
NESTED = json.dumps({"body": json.dumps({"to": list(EACH), "inner": json.dumps({NAME: ALL})})})
CARRIERS: dict[str, Fields] = {
    "input": {"input": ALL},
    "B68 message": {"input": [{"role": "user", "content": ALL}]},
    "B68 parts": {
        "input": [{"role": "user", "content": [{"type": "input_text", "text": t} for t in EACH]}]
    },
    "B69 instructions": {"instructions": ALL},
    "B69 developer": {"input": [{"role": "developer", "content": ALL}, USER]},
    "system parts": {
        "input": [{"role": "system", "content": [{"type": "input_text", "text": ALL}]}, USER]
    },
    "assistant": {"input": [USER, {"role": "assistant", "content": ALL}, USER]},
    "output_text": {
        "input": [
            {
                "id": NAME,
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": ALL, "annotations": [{"title": ALL}]},
                    {"type": "refusal", "refusal": ALL},
                ],
                "phase": ALL,
            },
            USER,
        ]
    },
    "arguments": _call(json.dumps({"to": NAME, "cc": [MAIL, {"n": PHONE}], "id": SECRET})),
    "argument keys": _call(json.dumps(dict.fromkeys(EACH, 1))),
    "nested arguments": _call(NESTED),
    "broken arguments": _call('{"to": "' + ALL),
    "fields of a call": _call("{}", namespace=ALL, id=ALL, status=NAME),
    "output": _call("{}", json.dumps({"found": EACH})),
    "output parts": _call("{}", [{"type": "input_text", "text": ALL}]),
    "ids": {"input": [{"role": "user", "content": ALL}, *_call("{}", call_id="Varga_1")["input"]]},
    "reasoning": {
        "input": [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": ALL}],
                "encrypted_content": ALL,
            },
            USER,
        ]
    },
    "search": {
        "input": [
            {
                "type": "file_search_call",
                "id": "fs_1",
                "status": "completed",
                "queries": [ALL],
                "results": [{"text": ALL}],
            },
            USER,
        ]
    },
    "tool description": _tool(description=ALL, parameters={"type": "object", "properties": {}}),
    "tool parameters": _tool(parameters=SCHEMA),
    "text.format schema": _format(schema=SCHEMA),
    "text.format description": _format(schema={"type": "object"}, description=ALL),
    "metadata": {"metadata": {"owner": NAME, MAIL: PHONE, "key": SECRET}},
    "user": {"user": MAIL, "safety_identifier": NAME, "prompt_cache_key": PHONE},
}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_B68_B69_no_canary_leaves(gateway: Gateway, carrier: str) -> None:
    body = {"model": "test-model", "input": [USER], **CARRIERS[carrier]}
    for stream in (False, True):
        before = len(gateway.upstream.requests)
        session = f"responses-{sum(map(ord, carrier))}-{stream}"
        response = gateway.post({**body, "stream": stream}, session, "/responses")
        assert response.status_code == 200, response.text
        (sent,) = gateway.upstream.requests[before:]
        assert found_in(sent, LEAKS) == [], sent


def test_what_the_request_said_is_shown_as_it_was(gateway: Gateway) -> None:
    fields: Fields = {
        "instructions": ALL,
        **_tool(parameters=SCHEMA, description=ALL),
        **CARRIERS["metadata"],
        **CARRIERS["user"],
        **_format(schema=SCHEMA),
    }
    made = gateway.post(
        {"model": "test-model", "input": ALL, **fields}, "echo", "/responses"
    ).json()
    for name, value in fields.items():
        if name != "safety_identifier":
            assert made[name] == value, name
    assert made["output"][0]["content"][0]["text"] == f"You wrote: {ALL} Thank you."


def test_ids_and_schemas_stay_consistent(gateway: Gateway) -> None:
    body = {"model": "test-model", **CARRIERS["ids"], **_tool(parameters=SCHEMA)}
    assert gateway.post(body, "paired", "/responses").status_code == 200
    sent = gateway.upstream.bodies[-1]
    assert sent["messages"][2]["tool_calls"][0]["id"] == sent["messages"][3]["tool_call_id"]
    parameters = sent["tools"][0]["function"]["parameters"]
    assert set(parameters["required"]) == set(parameters["properties"])


def test_pictures_are_the_policys_matter(
    gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    picture = "data:image/png;base64,iVBORw0KGgoAKIAABCD="
    parts = [{"type": "input_text", "text": ALL}, {"type": "input_image", "image_url": picture}]
    body = {"model": "test-model", "input": [{"role": "user", "content": parts}]}
    before = len(gateway.upstream.requests)
    refused = gateway.post(body, "pictures", "/responses")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "media_not_allowed")
    shown = _call("{}", [{"type": "input_image", "image_url": picture}])
    assert gateway.post({**body, **shown}, "pictures", "/responses").status_code == 403
    assert len(gateway.upstream.requests) == before
    with running_gateway(
        tmp_path_factory.mktemp("pictures"),
        detector=gateway.services.detector,
        policy={"images": "allow"},
    ) as open_one:
        assert open_one.post(body, "pictures", "/responses").status_code == 200
        sent = open_one.upstream.bodies[-1]["messages"][0]["content"]
        assert found_in(open_one.upstream.requests[-1], LEAKS) == []
        named = {"type": "input_file", "file_data": picture, "filename": f"{NAME}.pdf"}
        body = {"model": "test-model", "input": [{"role": "user", "content": [named]}]}
        assert open_one.post(body, "file-names", "/responses").status_code == 200
        file = open_one.upstream.bodies[-1]["messages"][0]["content"][0]["file"]
        assert found_in(open_one.upstream.requests[-1], LEAKS) == []
    assert file["file_data"] == picture and file["filename"].endswith(".pdf")
    assert sent[1] == {"type": "image_url", "image_url": {"url": picture, "detail": "auto"}}


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 10_000])
def test_every_cut_restores_all_four_places(scripted: Gateway, cut: int) -> None:
    """Text, refusal and arguments, cut inside the substitutes."""

    def script(handler: Handler, body: Fields) -> None:
        text = body["messages"][-1]["content"]
        function = {"name": "f", "arguments": json.dumps({"x": [text, json.dumps({"y": text})]})}
        calls = [{"id": "c", "type": "function", "function": function}]
        message = {"content": f"You wrote: {text}", "tool_calls": calls}
        send_message(handler, body, message, cut)

    scripted.upstream.script = script
    events = list(
        scripted.client().responses.create(
            model="test-model",
            input=ALL,
            stream=True,
            extra_headers={"x-penname-session": "cuts"},
        )
    )
    said = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    (done,) = [e.text for e in events if e.type == "response.output_text.done"]
    (part,) = [e.part.text for e in events if e.type == "response.content_part.done"]  # type: ignore[union-attr]
    items = [e.item for e in events if e.type == "response.output_item.done"]
    final = events[-1].response  # type: ignore[union-attr]
    assert said == done == part == items[0].content[0].text == final.output_text  # type: ignore[union-attr]
    assert said == f"You wrote: {ALL}"
    arguments = "".join(
        e.delta for e in events if e.type == "response.function_call_arguments.delta"
    )
    assert arguments == items[1].arguments == final.output[1].arguments  # type: ignore[union-attr]
    first, second = json.loads(arguments)["x"]
    assert first == json.loads(second)["y"] == ALL
    assert scripted.client().responses.retrieve(final.id).output == final.output


# Errors and logs.

CANARIES = ("Zsuzsanna", "Quillfeather", "zsuzsanna", "quillfeather", "555-0187")
PERSON = "Zsuzsanna Quillfeather"
TEXT = f"Ask {PERSON}, zsuzsanna.quillfeather@corp9.internal, +1 212-555-0187."
REFUSED: dict[str, Any] = {
    "model": {"model": PERSON},
    "input": {"input": {PERSON: TEXT}},
    "item": {"input": [{"type": PERSON, "text": TEXT}]},
    "field": {PERSON: TEXT},
    "lower field": {"zsuzsanna": TEXT},
    "tool": {"tools": [{"type": "mcp", "server_label": TEXT}]},
    "conversation": {"conversation": PERSON},
    "background": {"background": True},
    "previous": {"previous_response_id": PERSON},
    "session": {"metadata": {"penname_session": PERSON}},
    "store": {"penname": {"vector_store_ids": [PERSON]}},
    "stores": {"penname": {"vector_store_ids": PERSON}},
    "unpaired": _call("{}", call_id=PERSON)["input"][:2],
}


def _leaks(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_quote_nothing(gateway: Gateway, case: str) -> None:
    fields = REFUSED[case] if isinstance(REFUSED[case], dict) else {"input": REFUSED[case]}
    before = len(gateway.upstream.requests)
    with kept_log() as log:
        response = gateway.post({"model": "test-model", "input": TEXT, **fields}, "", "/responses")
    assert 400 <= response.status_code < 500, response.text
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert _leaks(response.text + "".join(log.lines)) == []
    assert len(gateway.upstream.requests) == before


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "test-model", "input": "\xff"}', b""])
def test_bad_bodies_have_openais_shape(gateway: Gateway, body: bytes) -> None:
    response = gateway.post(body, "", "/responses")
    assert response.status_code == 400
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_answers_and_upstream_errors_leave_no_trace(scripted: Gateway, stream: bool) -> None:
    def quote(handler: Handler, body: Fields) -> None:
        send(handler, 422, json.dumps({"error": {"message": TEXT}}).encode(), "application/json")

    def break_off(handler: Handler, body: Fields) -> None:
        open_stream(handler, b"data: " + json.dumps({"error": {"message": TEXT}}).encode())

    start = len(scripted.events)
    body = {"model": "test-model", "input": TEXT, "stream": stream}
    with kept_log() as log:
        answer = scripted.post(body, "responses-secrecy", "/responses")
        told = []
        for script in (quote, break_off):
            scripted.upstream.script = script
            told.append(scripted.post(body, "responses-secrecy", "/responses").text)
        id = json.loads(answer.text.strip().rsplit("data: ")[-1])
        id = id.get("response", id)["id"]
        for path in (id, f"{id}/input_items"):
            assert PERSON in scripted.http.get(f"{scripted.url}/responses/{path}").text
        wrong = scripted.http.get(f"{scripted.url}/responses/{PERSON}")
    assert PERSON in answer.text
    assert wrong.status_code == 404
    assert all('"error"' in text for text in told)
    assert _leaks("".join([*told, wrong.text, *log.lines])) == []
    assert _leaks("".join(map(repr, scripted.events[start:]))) == []


# Whose responses they are, and how long.


@pytest.fixture
def other(gateway: Gateway) -> Iterator[OpenAI]:
    """A client of another tenant."""
    gateway.services.tenants.ensure("other")
    key, _ = gateway.services.keys.create("client", "other")
    with OpenAI(base_url=gateway.url, api_key=key, max_retries=0) as client:
        yield client


def test_tenants_do_not_meet(gateway: Gateway, other: OpenAI) -> None:
    made = gateway.client().responses.create(model="test-model", input=ALL)
    for call in (
        other.responses.retrieve,
        other.responses.delete,
        other.responses.cancel,
        other.responses.input_items.list,
    ):
        with pytest.raises(NotFoundError):
            call(made.id)
    before = len(gateway.upstream.requests)
    with pytest.raises(BadRequestError) as caught:
        other.responses.create(model="test-model", input="Hello", previous_response_id=made.id)
    assert caught.value.code == "previous_response_not_found"
    assert len(gateway.upstream.requests) == before
    assert gateway.client().responses.retrieve(made.id).output_text


def test_no_key_no_response(gateway: Gateway) -> None:
    made = gateway.client().responses.create(model="test-model", input="Hello")
    with OpenAI(base_url=gateway.url, api_key="pn-wrong", max_retries=0) as client:
        raw = client.responses.with_raw_response
        for call in (raw.retrieve, raw.delete, raw.cancel):
            with pytest.raises(Exception, match="401"):
                call(made.id)


def test_a_response_stays_in_its_session(gateway: Gateway) -> None:
    client = gateway.client()
    named = {"x-penname-session": "first-session"}
    made = client.responses.create(model="test-model", input=ALL, extra_headers=named)
    same = client.responses.with_raw_response.create(
        model="test-model", input=NAME, previous_response_id=made.id, extra_headers=named
    )
    unnamed = client.responses.with_raw_response.create(
        model="test-model", input=NAME, previous_response_id=same.parse().id
    )
    for raw in (same, unnamed):
        assert raw.headers["x-penname-session"] == "first-session"
    for elsewhere in (
        {"extra_headers": {"x-penname-session": "second-session"}},
        {"extra_body": {"penname": {"session": "second-session"}}},
        {"metadata": {"penname_session": "second-session"}},
    ):
        with pytest.raises(BadRequestError) as caught:
            client.responses.create(
                model="test-model",
                input=NAME,
                previous_response_id=made.id,
                **elsewhere,  # type: ignore[arg-type]
            )
        assert caught.value.param == "previous_response_id"


def test_forgetting_a_session_forgets_its_responses(gateway: Gateway) -> None:
    client = gateway.client()
    first = client.responses.with_raw_response.create(model="test-model", input=f"Forget {NAME}.")
    session, made = first.headers["x-penname-session"], first.parse()
    gateway.http.delete(f"{gateway.url}/privacy/sessions/{session}").raise_for_status()
    with pytest.raises(NotFoundError):
        client.responses.retrieve(made.id)
    with pytest.raises(BadRequestError):
        client.responses.create(model="test-model", input="x", previous_response_id=made.id)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_session_forgotten_under_way_keeps_nothing(scripted: Gateway, stream: bool) -> None:
    def script(handler: Handler, body: Fields) -> None:
        scripted.http.delete(f"{scripted.url}/privacy/sessions/under-way").raise_for_status()
        send_message(handler, body, {"content": body["messages"][-1]["content"]})

    scripted.upstream.script = script
    body = {"model": "test-model", "input": ALL, "stream": stream}
    response = scripted.post(body, "under-way", "/responses")
    found = json.loads(response.text.strip().rsplit("data: ")[-1])
    found = found.get("response", found)
    assert found["output"][0]["content"][0]["text"] == ALL
    assert found["store"] is False
    with pytest.raises(NotFoundError):
        scripted.client().responses.retrieve(found["id"])
    assert scripted.services.sessions.get("acme", "under-way") is None


def test_a_younger_session_of_the_same_id_gets_no_response_of_the_older_one(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = gateway.services.sessions
    charged = routes.charged

    async def forgotten_meanwhile(*args: Any) -> dict[str, str]:
        assert sessions.forget("acme", "reused")
        sessions.open("acme", "reused", "balanced")
        return await charged(*args)

    monkeypatch.setattr(routes, "charged", forgotten_meanwhile)
    body = {"model": "test-model", "input": ALL}
    made = gateway.post(body, "reused", "/responses").json()
    assert made["store"] is False
    with pytest.raises(NotFoundError):
        gateway.client().responses.retrieve(made["id"])


def test_a_resent_request_costs_nothing(gateway: Gateway) -> None:
    client = gateway.client()
    seen = []
    for _ in range(3):
        raw = client.responses.with_raw_response.create(model="test-model", input=f"Resent: {ALL}")
        seen.append((raw.headers["x-penname-session"], raw.headers["x-penname-epsilon-spent"]))
    assert len(set(seen)) == 1
    assert len({json.dumps(body["messages"]) for body in gateway.upstream.bodies[-3:]}) == 1


def test_concurrent_turns_on_one_response(gateway: Gateway) -> None:
    client = gateway.client()
    first = client.responses.create(model="test-model", input="Okonkwo wrote to Amina Okonkwo.")
    start = len(gateway.upstream.bodies)
    ready = threading.Barrier(6)

    def turn(number: int) -> str:
        ready.wait(20)
        text = f"Ask Séverine Blanchet and Amina Okonkwo, {number}."
        made = client.responses.create(
            model="test-model", input=text, previous_response_id=first.id
        )
        assert made.output_text == f"You wrote: {text} Thank you."
        return made.id

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(turn, range(6)))
    assert len(set(made)) == 6
    sent = {
        body["messages"][-1]["content"].rsplit(",")[0] for body in gateway.upstream.bodies[start:]
    }
    assert len(sent) == 1
    for id in made:  # each continues the first, none another
        assert len(client.responses.input_items.list(id).data) == 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_that_can_not_be_stored_is_not_given(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr(gateway.services.responses, "add", full)
    body = {"model": "test-model", "input": ALL, "stream": stream}
    response = gateway.post(body, "unstored", "/responses")
    if stream:
        last = json.loads(response.text.strip().rsplit("data: ")[-1])
        assert last["type"] == "response.failed"
        assert "could not be stored" in last["response"]["error"]["message"]
    else:
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "store_unavailable"
    body["store"] = False
    assert gateway.post(body, "unstored", "/responses").status_code == 200
