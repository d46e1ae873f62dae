"""The official client on ``/v1/responses``: whole, streamed, parsed, with tools, turn by turn."""

import io
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from e2e_gateway import Gateway, found_in
from e2e_upstream import send_message
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from openai.types.responses import Response
from pydantic import BaseModel

Handler = BaseHTTPRequestHandler
TEXT = "Write to Ilse Varga at ilse.varga@corp7.internal."
LEAKS = ("Ilse", "Varga", "ilse", "varga", "corp7")
ANSWER = f"You wrote: {TEXT} Thank you."
TOOL: Any = {
    "type": "function",
    "name": "send_mail",
    "description": "Writes for Ilse Varga",
    "strict": False,
    "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
}


class Letter(BaseModel):
    to: str
    lines: list[str]


def last(gateway: Gateway) -> dict[str, Any]:
    """The last body that left; it holds no original."""
    assert found_in(gateway.upstream.requests[-1], LEAKS) == []
    return gateway.upstream.bodies[-1]


def events_of(gateway: Gateway, **fields: Any) -> list[Any]:
    return list(gateway.client().responses.create(model="test-model", stream=True, **fields))


def test_a_whole_response(gateway: Gateway) -> None:
    raw = gateway.client().responses.with_raw_response.create(
        model="test-model",
        input=TEXT,
        instructions="Be brief.",
        metadata={"team": "a"},
        temperature=0.5,
        max_output_tokens=99,
        user="ilse.varga@corp7.internal",
    )
    response = raw.parse()
    assert response.output_text == ANSWER
    assert (response.status, response.model, response.object) == (
        "completed",
        "test-model",
        "response",
    )
    assert (response.instructions, response.metadata) == ("Be brief.", {"team": "a"})
    assert (response.temperature, response.max_output_tokens) == (0.5, 99)
    assert response.usage is not None and response.usage.total_tokens == 2
    assert response.id.startswith("resp_") and response.output[0].id.startswith("msg_")  # type: ignore[union-attr]
    assert float(raw.headers["x-penname-epsilon-spent"]) > 0
    assert raw.headers["x-penname-session"].startswith("auto-")
    assert raw.headers["x-penname-entities"] == "EMAIL=1,PERSON=1"
    body = last(gateway)
    assert "metadata" not in body and body["max_completion_tokens"] == 99
    assert body["user"].startswith("pn-")


def test_the_events_of_a_stream(gateway: Gateway) -> None:
    events = events_of(gateway, input=TEXT)
    kinds = [event.type.removeprefix("response.") for event in events]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 5
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * len(deltas),
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text, part, item, done = events[-4:]
    said = item.item.content[0].text
    assert "".join(deltas) == text.text == part.part.text == said == done.response.output_text
    assert said == ANSWER
    assert {e.item_id for e in events if hasattr(e, "item_id")} == {item.item.id}
    assert done.response.output[0].id == item.item.id
    assert events[0].response.id == done.response.id
    assert events[0].response.status == "in_progress"
    assert done.response.usage is None  # the upstream told none
    assert last(gateway)["stream_options"] == {"include_usage": True}


def test_frames_name_their_events(gateway: Gateway) -> None:
    response = gateway.post(
        {"model": "test-model", "input": TEXT, "stream": True}, "", "/responses"
    )
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-penname-session"]
    for frame in response.text.strip().split("\n\n"):
        event, data = frame.split("\n")
        assert event.removeprefix("event: ") == json.loads(data.removeprefix("data: "))["type"]


def test_the_stream_helper(gateway: Gateway) -> None:
    with gateway.client().responses.stream(model="test-model", input=TEXT) as stream:
        snapshots = [e.snapshot for e in stream if e.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert snapshots[-1] == final.output_text == ANSWER


async def test_the_async_client(gateway: Gateway) -> None:
    client = AsyncOpenAI(
        base_url=gateway.url, api_key=gateway.key, max_retries=0, _strict_response_validation=True
    )
    whole = await client.responses.create(model="test-model", input=TEXT)
    stream = await client.responses.create(model="test-model", input=TEXT, stream=True)
    deltas = [e.delta async for e in stream if e.type == "response.output_text.delta"]
    async with client.responses.stream(model="test-model", input=TEXT) as helper:
        final = await helper.get_final_response()
    stored = await client.responses.retrieve(final.id)
    await client.close()
    assert whole.output_text == "".join(deltas) == final.output_text == stored.output_text == ANSWER


def _letter(handler: Handler, body: dict[str, Any]) -> None:
    """Write to whom the message names, as JSON."""
    name = body["messages"][-1]["content"].removeprefix("Write to ").split(" at ")[0]
    text = json.dumps({"to": name, "lines": [f"Dear {name},", f"bye, {name}"]})
    send_message(handler, body, {"content": text}, 2)


def test_structured_output_is_parsed(scripted: Gateway) -> None:
    scripted.upstream.script = _letter
    client = scripted.client()
    letter = Letter(to="Ilse Varga", lines=["Dear Ilse Varga,", "bye, Ilse Varga"])
    done = client.responses.parse(model="test-model", input=TEXT, text_format=Letter)
    assert done.output_parsed == letter
    sent = last(scripted)["response_format"]
    assert sent["type"] == "json_schema" and sent["json_schema"]["strict"] is True
    assert set(sent["json_schema"]["schema"]["properties"]) == {"to", "lines"}
    with client.responses.stream(model="test-model", input=TEXT, text_format=Letter) as stream:
        assert stream.get_final_response().output_parsed == letter


def _calling(handler: Handler, body: dict[str, Any]) -> None:
    """Call a function with the person's name; answer when its output is there."""
    messages = body["messages"]
    if messages[-1]["role"] == "tool":
        send_message(handler, body, {"content": f"Done: {messages[-1]['content']}"}, 2)
        return
    name = messages[-1]["content"].removeprefix("Write to ").split(" at ")[0]
    arguments = json.dumps({"to": name, "copy": [f"the office of {name}"]})
    function = {"name": "send_mail", "arguments": arguments}
    calls = [{"id": f"call_{i}", "type": "function", "function": function} for i in (1, 2)]
    send_message(handler, body, {"content": "Sending.", "tool_calls": calls}, 2)


ARGUMENTS = {"to": "Ilse Varga", "copy": ["the office of Ilse Varga"]}


@pytest.mark.parametrize("stateful", [False, True], ids=["resent", "by id"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_tool_loop(scripted: Gateway, stream: bool, stateful: bool) -> None:
    scripted.upstream.script = _calling
    client = scripted.client()

    def ask(**fields: Any) -> Response:
        fields |= {"model": "test-model", "tools": [TOOL], "store": stateful}
        if not stream:
            return client.responses.create(**fields)  # type: ignore[no-any-return]
        with client.responses.stream(**fields) as events:
            return events.get_final_response()

    first = ask(input=TEXT)
    message, *calls = first.output
    assert (message.type, first.output_text) == ("message", "Sending.")
    assert [c.call_id for c in calls] == ["call_1", "call_2"]  # type: ignore[union-attr]
    assert all(json.loads(c.arguments) == ARGUMENTS for c in calls)  # type: ignore[union-attr]
    assert all(c.name == "send_mail" for c in calls)  # type: ignore[union-attr]
    outputs: list[Any] = [
        {"type": "function_call_output", "call_id": c.call_id, "output": "sent to Ilse Varga"}  # type: ignore[union-attr]
        for c in calls
    ]
    if stateful:
        second = ask(input=outputs, previous_response_id=first.id)
    else:
        history = [item.model_dump() for item in first.output]
        second = ask(input=[{"role": "user", "content": TEXT}, *history, *outputs])
    assert second.output_text == "Done: sent to Ilse Varga"
    sent = last(scripted)["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool"]
    assert [c["id"] for c in sent[1]["tool_calls"]] == ["call_1", "call_2"]
    assert sent[1]["content"] == "Sending."


def test_streamed_arguments_are_told_piece_by_piece(scripted: Gateway) -> None:
    scripted.upstream.script = _calling
    events = events_of(scripted, input=TEXT, tools=[TOOL])
    for index in (1, 2):
        own = [e for e in events if getattr(e, "output_index", None) == index]
        deltas = [e.delta for e in own if e.type == "response.function_call_arguments.delta"]
        assert len(deltas) > 5
        assert own[-2].type == "response.function_call_arguments.done"
        text = own[-1].item.arguments
        assert "".join(deltas) == own[-2].arguments == text
        assert events[-1].response.output[index].arguments == text
        assert json.loads(text) == ARGUMENTS
        assert own[-1].item.id.startswith("fc_")


def test_a_refusal(scripted: Gateway) -> None:
    def script(handler: Handler, body: dict[str, Any]) -> None:
        said = f"No: {body['messages'][-1]['content']}"
        send_message(handler, body, {"content": None, "refusal": said})

    scripted.upstream.script = script
    done = scripted.client().responses.create(model="test-model", input=TEXT)
    assert done.output[0].content[0].refusal == f"No: {TEXT}"  # type: ignore[union-attr]
    assert done.output_text == ""


def test_turns_by_id_continue_one_session(gateway: Gateway) -> None:
    client = gateway.client()
    text = "My name is Imogen Petrescu."
    first = client.responses.with_raw_response.create(
        model="test-model", input=text, instructions="Be brief."
    )
    spent = first.headers["x-penname-epsilon-spent"]
    previous = first.parse()
    for number in range(3):
        raw = client.responses.with_raw_response.create(
            model="test-model",
            input=f"Is Imogen Petrescu here, try {number}?",
            previous_response_id=previous.id,
        )
        assert raw.headers["x-penname-session"] == first.headers["x-penname-session"]
        assert raw.headers["x-penname-epsilon-spent"] == spent
        previous = raw.parse()
        assert (
            previous.output_text == f"You wrote: Is Imogen Petrescu here, try {number}? Thank you."
        )
    messages = gateway.upstream.bodies[-1]["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant"] * 3 + ["user"]
    assert found_in(gateway.upstream.requests[-1], ("Imogen", "Petrescu")) == []
    name = messages[0]["content"].removeprefix("My name is ").removesuffix(".")
    assert all(name in m["content"] for m in messages)


def test_stored_responses(gateway: Gateway) -> None:
    client = gateway.client()
    made = client.responses.create(
        model="test-model", input=[{"role": "user", "content": TEXT}], metadata={"a": "b"}
    )
    assert client.responses.retrieve(made.id) == made
    streamed = events_of(gateway, input=TEXT, previous_response_id=made.id)[-1].response
    assert client.responses.retrieve(streamed.id) == streamed
    items = list(client.responses.input_items.list(streamed.id, order="asc", limit=1))
    assert [(i.type, i.role) for i in items] == [  # type: ignore[union-attr]
        ("message", "user"),
        ("message", "assistant"),
        ("message", "user"),
    ]
    assert items[1].id == made.output[0].id
    assert [i.content[0].text for i in items] == [TEXT, ANSWER, TEXT]  # type: ignore[union-attr]
    newest = client.responses.input_items.list(streamed.id, limit=2)
    assert newest.has_more and [i.id for i in newest.data] == [items[2].id, items[1].id]
    rest = client.responses.input_items.list(streamed.id, after=items[1].id)
    assert [i.id for i in rest.data] == [items[0].id]
    with pytest.raises(BadRequestError, match="after"):
        client.responses.input_items.list(streamed.id, after="msg_none")
    with pytest.raises(BadRequestError, match="background"):
        client.responses.cancel(made.id)
    client.responses.delete(made.id)
    for call in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(NotFoundError):
            call(made.id)
    with pytest.raises(BadRequestError) as caught:
        client.responses.create(model="test-model", input="x", previous_response_id=streamed.id)
    assert (caught.value.param, caught.value.code) == (
        "previous_response_id",
        "previous_response_not_found",
    )


def test_input_items_of_a_conversation_that_is_not_whole(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = gateway.client()
    turns: list[Response] = []
    for number in range(4):
        previous = turns[-1].id if turns else None
        turns.append(
            client.responses.create(
                model="test-model", input=f"Turn {number}", previous_response_id=previous
            )
        )
    monkeypatch.setattr("store.responses.MOST_TURNS", 3)
    with pytest.raises(BadRequestError, match="too many turns") as caught:
        client.responses.input_items.list(turns[3].id)
    assert caught.value.param == "response_id"
    assert len(client.responses.input_items.list(turns[2].id).data) == 5
    client.responses.delete(turns[0].id)
    assert client.responses.retrieve(turns[2].id) == turns[2]
    with pytest.raises(BadRequestError, match="one before it was deleted"):
        client.responses.input_items.list(turns[2].id)


def test_what_is_not_to_be_stored_is_not(gateway: Gateway) -> None:
    client = gateway.client()
    made = client.responses.create(model="test-model", input=TEXT, store=False)
    streamed = events_of(gateway, input=TEXT, store=False)[-1].response
    for response in (made, streamed):
        assert response.to_dict()["store"] is False
        with pytest.raises(NotFoundError):
            client.responses.retrieve(response.id)


def test_file_search_searches_here(gateway: Gateway) -> None:
    client = gateway.client()
    document = "The supply contract was signed by Séverine Blanchet in Basel."
    upload = client.files.create(
        file=("contract.txt", io.BytesIO(document.encode())), purpose="assistants"
    )
    store = client.vector_stores.create(name="contracts")
    client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=upload.id)
    question = "Who signed the supply contract?"
    tool: Any = {"type": "file_search", "vector_store_ids": [store.id], "max_num_results": 1}
    made = client.responses.create(
        model="test-model", input=question, tools=[tool], include=["file_search_call.results"]
    )
    search, message = made.output
    assert search.type == "file_search_call" and search.queries == [question]
    assert search.results is not None and search.results[0].text == document
    assert search.results[0].filename == "contract.txt"
    assert document in made.output_text
    sent = gateway.upstream.requests[-1].decode()
    assert found_in(sent, ("Blanchet", "Séverine")) == [] and "supply contract" in sent
    assert store.id not in sent and "tools" not in gateway.upstream.bodies[-1]
    assert client.responses.retrieve(made.id).output[0].results is None  # type: ignore[union-attr]
    again = client.responses.retrieve(made.id, include=["file_search_call.results"])
    assert again.output[0].results == search.results  # type: ignore[union-attr]
    events = events_of(gateway, input=question, tools=[tool])
    assert [e.type.rsplit(".", 1)[1] for e in events[2:7]] == [
        "added",
        "in_progress",
        "searching",
        "completed",
        "done",
    ]
    assert events[6].item.results is None
    # The search that an answer carried may come back with the history.
    history: Any = [{"role": "user", "content": question}, *[o.model_dump() for o in made.output]]
    follow: Any = [*history, {"role": "user", "content": "Thank you."}]
    assert client.responses.create(model="test-model", input=follow).output_text
