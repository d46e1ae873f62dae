"""Faults of comparable systems, by id: maps, sessions, what comes back and when."""

import io
import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import pytest
from e2e_gateway import Gateway, found_in, kept_log
from e2e_upstream import delta_frame, open_stream, send_message

from gateway.events import Answered, Sanitised
from privacy.substitution.entry import Entry
from privacy.types import PERSON
from store.sessions import Change

Handler = BaseHTTPRequestHandler
Body = dict[str, Any]


def _user(text: str) -> Body:
    return {"role": "user", "content": text}


def _contents(gateway: Gateway) -> list[str]:
    return [m["content"] for m in gateway.upstream.bodies[-1]["messages"]]


def _reply(gateway: Gateway, text: str, cut: int = 1) -> None:
    gateway.upstream.script = lambda handler, body: send_message(
        handler, body, {"content": text}, cut
    )


def _issue(gateway: Gateway, session: str, pairs: Sequence[tuple[str, str, str]]) -> None:
    """Let a session hold substitutes of the test's choice: (part, original, substitute)."""
    sessions = gateway.services.sessions
    sessions.open("acme", session, gateway.pipeline.policy.name)
    entries = [
        Entry(f"person.{part}", original.casefold(), original, substitute, type=PERSON)
        for part, original, substitute in pairs
    ]
    sessions.apply("acme", session, "req", lambda _: Change(entries))


def test_B31_one_value_one_substitute(gateway: Gateway) -> None:
    messages = [
        {"role": "system", "content": "Owner is Ilse Varga."},
        _user("Tadeo Brandt reports to Ilse Varga."),
    ]
    gateway.ask(messages, "fault-B31")
    system, user = _contents(gateway)
    owner = system.removeprefix("Owner is ").removesuffix(".")
    assert user.endswith(f" reports to {owner}.")
    assert not user.startswith(owner)


@pytest.mark.parametrize("case", ["B34", "B35"])
def test_known_values_keep_their_substitutes(gateway: Gateway, case: str) -> None:
    texts = {
        "B34": ("Ilse, ilse@example.com", "Tadeo, tadeo@example.com, ilse@example.com"),
        "B35": ("Ilse Varga called. Ilse Varga left.", "Ilse Varga came back."),
    }[case]
    sent = []
    for text in texts:
        assert gateway.ask(text, f"fault-{case}") == f"You wrote: {text} Thank you."
        sent.append(_contents(gateway)[-1])
    if case == "B34":
        assert sent[1].split(", ")[2] == sent[0].split(", ")[1]
        assert sent[1].split(", ")[1] != sent[0].split(", ")[1]
    else:
        name = sent[1].removesuffix(" came back.")
        assert sent[0] == f"{name} called. {name} left."


def test_B32_B51_what_a_client_kept_raw_is_not_masked_again(gateway: Gateway) -> None:
    """A client that stored the provider's own words quotes substitutes; they stay what they are."""
    gateway.ask("Note for Ilse Varga: ring 212-555-0142.", "fault-B51")
    raw = _contents(gateway)[-1]
    name = raw.removeprefix("Note for ").partition(":")[0]
    answer = gateway.ask([_user(f"Tadeo Brandt wrote: {raw}")], "fault-B51")
    assert _contents(gateway)[-1].endswith(raw)
    assert (
        answer
        == "You wrote: Tadeo Brandt wrote: Note for Ilse Varga: ring 212-555-0142. Thank you."
    )
    elsewhere = gateway.ask([_user(f"Greet {name}.")], "fault-B51-other")
    assert elsewhere == f"You wrote: Greet {name}. Thank you."


PREFIXES: dict[str, tuple[list[tuple[str, str, str]], str, str]] = {
    "B36": (
        [("given", "Ilse", "Mark"), ("family", "Varga", "Lee"), ("family", "Brandt", "Leeson")],
        "Mark Leeson met Mark Lee, not Marketing.",
        "Ilse Brandt met Ilse Varga, not Marketing.",
    ),
    "B37": (
        [("given", "Ilse", "Marta"), ("given", "Tadeo", "Martano")],
        "Martano and Marta, Martanova and Martano.",
        "Tadeo and Ilse, Martanova and Tadeo.",
    ),
}


@pytest.mark.parametrize("cut", [0, 1, 4, 100])
@pytest.mark.parametrize("case", PREFIXES)
def test_a_substitute_that_begins_another(scripted: Gateway, case: str, cut: int) -> None:
    pairs, reply, expected = PREFIXES[case]
    session = f"fault-{case}-{cut}"
    _issue(scripted, session, pairs)
    _reply(scripted, reply, cut or 3)
    assert scripted.ask("Who met whom?", session, bool(cut)) == expected


def test_B39_no_original_serves_as_a_substitute(gateway: Gateway) -> None:
    names = {"tadeo", "brandt", "ilse", "varga"}
    for number in range(12):
        gateway.ask("Tadeo Brandt and Ilse Varga", f"fault-B39-{number}")
        assert names.isdisjoint(_contents(gateway)[-1].casefold().split())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_B43_the_reply_greets_the_user(scripted: Gateway, stream: bool) -> None:
    def script(handler: Handler, body: Body) -> None:
        name = (
            body["messages"][0]["content"].removeprefix("My name is ").removesuffix(", greet me.")
        )
        send_message(handler, body, {"content": f"Hello {name}, dear {name.split()[0]}!"}, 2)

    scripted.upstream.script = script
    answer = scripted.ask("My name is Ilse Varga, greet me.", "fault-B43", stream)
    assert answer == "Hello Ilse Varga, dear Ilse!"
    ready = httpx.get(scripted.url.replace("/v1", "/readyz"))
    assert ready.json()["checks"]["detector"] == "ok"


VARIANTS = ("**{g} {f}**", "{G} {F}", "{g}\n{f}", "{f}", "{g}'s", "*{f}*", "{g}  {f}")


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_B44_variants_of_a_substitute(scripted: Gateway, cut: int) -> None:
    _issue(scripted, f"B44-{cut}", [("given", "Ilse", "Renske"), ("family", "Varga", "Holtkamp")])
    reply = " / ".join(
        v.format(g="Renske", f="Holtkamp", G="RENSKE", F="HOLTKAMP") for v in VARIANTS
    )
    _reply(scripted, reply, cut or 3)
    answer = scripted.ask("Go on.", f"B44-{cut}", bool(cut))
    assert answer == reply.replace("Renske", "Ilse").replace("Holtkamp", "Varga").replace(
        "RENSKE HOLTKAMP", "ILSE VARGA"
    )


def test_B49_document_and_question_share_the_map(scripted: Gateway) -> None:
    client = scripted.client()
    text = "Letter to Ilse Varga about the lease of the mill in the valley."
    upload = client.files.create(
        file=("letter.txt", io.BytesIO(text.encode())), purpose="assistants"
    )
    store = client.vector_stores.create(name="letters")
    client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=upload.id)
    _reply(scripted, "x")

    def script(handler: Handler, body: Body) -> None:
        content = body["messages"][-1]["content"]
        name = content.partition("Letter to ")[2].partition(" about")[0]
        send_message(handler, body, {"content": f"It is for {name}."})

    scripted.upstream.script = script
    answer = scripted.ask(
        "Who is the letter about the lease of the mill for? Is Ilse Varga named in it?",
        "fault-B49",
        extra_body={"penname": {"vector_store_ids": [store.id]}},
    )
    assert answer == "It is for Ilse Varga."
    assert found_in(scripted.upstream.requests[-1], ("Varga",)) == []
    found = client.vector_stores.search(vector_store_id=store.id, query="Ilse Varga")
    assert "Ilse Varga" in found.data[0].content[0].text


def test_B50_only_the_client_sees_originals(scripted: Gateway) -> None:
    """A tool call is restored at the client's border; relayed back, it is a substitute again."""

    def script(handler: Handler, body: Body) -> None:
        to = body["messages"][0]["content"].removeprefix("Write to ").removesuffix(".")
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": "send_mail", "arguments": json.dumps({"to": to})},
        }
        send_message(handler, body, {"content": f"May I write to {to}?", "tool_calls": [call]})

    scripted.upstream.script = script
    start = len(scripted.events)
    question = _user("Write to Ilse Varga.")
    with kept_log() as log:
        done = scripted.client().chat.completions.create(
            model="test-model",
            messages=[question],  # type: ignore[list-item]
            extra_headers={"x-penname-session": "fault-B50"},
        )
    message = done.choices[0].message
    calls = message.tool_calls or []
    assert json.loads(calls[0].function.arguments) == {"to": "Ilse Varga"}  # type: ignore[union-attr]
    answered = next(e for e in scripted.events[start:] if isinstance(e, Answered))
    assert found_in(answered.received[0], ("Varga",)) == []
    assert "Varga" in answered.restored[0]
    assert "Varga" not in "".join(log.lines)
    relayed = {
        "role": "assistant",
        "content": message.content,
        "tool_calls": [calls[0].model_dump()],
    }
    approval = {"role": "tool", "tool_call_id": "call_1", "content": "Approved for Ilse Varga."}
    scripted.ask([question, relayed, approval], "fault-B50")
    sent = scripted.upstream.bodies[-1]["messages"]
    name = sent[0]["content"].removeprefix("Write to ").removesuffix(".")
    assert sent[1]["content"] == f"May I write to {name}?"
    assert json.loads(sent[1]["tool_calls"][0]["function"]["arguments"]) == {"to": name}
    assert sent[2]["content"] == f"Approved for {name}."


def test_B53_every_cut_gives_the_same_text(scripted: Gateway) -> None:
    _issue(scripted, "B53", [("given", "Ilse", "Marta"), ("family", "Varga", "Novák")])
    whole = delta_frame({"content": "Dear Marta Novák, hi; "}) + delta_frame({"content": "Novák."})
    raw = (whole + delta_frame({}, "stop") + b"data: [DONE]\n\n").replace(b"\\u00e1", "á".encode())
    for cut in (1, 2, 3, 7, 19, len(raw)):
        pieces = [raw[i : i + cut] for i in range(0, len(raw), cut)]

        def script(handler: Handler, body: Body, pieces: list[bytes] = pieces) -> None:
            open_stream(handler)
            for piece in pieces:
                handler.wfile.write(piece)
                handler.wfile.flush()

        scripted.upstream.script = script
        assert scripted.ask("Hi", "B53", True) == "Dear Ilse Varga, hi; Varga."
    for deltas in (["Dear Mar", "ta Nov", "ák, hi"], list("Dear Marta Novák, hi")):
        frames = [delta_frame({"content": d}) for d in deltas]
        scripted.upstream.script = lambda h, b, f=frames: open_stream(
            h, *f, delta_frame({}, "stop"), b"data: [DONE]\n\n"
        )
        assert scripted.ask("Hi", "B53", True) == "Dear Ilse Varga, hi"


def test_B54_text_without_substitutes_is_not_held_back(scripted: Gateway) -> None:
    """The upstream goes on only when the client has the piece before."""
    _issue(scripted, "B54", [("given", "Ilse", "Marta")])
    got = threading.Event()

    def script(handler: Handler, body: Body) -> None:
        open_stream(handler)
        for number in range(40):
            handler.wfile.write(delta_frame({"content": f"word {number}. "}))
            handler.wfile.flush()
            if not got.wait(5):
                return
            got.clear()
        handler.wfile.write(delta_frame({}, "stop") + b"data: [DONE]\n\n")

    scripted.upstream.script = script
    text = ""
    for chunk in scripted.client().chat.completions.create(
        model="test-model",
        messages=[{"role": "user", "content": "Hi"}],
        stream=True,
        extra_headers={"x-penname-session": "B54"},
    ):
        text += chunk.choices[0].delta.content or ""
        got.set()
    assert text == "".join(f"word {number}. " for number in range(40))


def test_B63_arguments_in_the_history(gateway: Gateway) -> None:
    arguments = json.dumps({"card": "4111 1111 1111 1111", "to": "Ilse Varga"})
    call = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": arguments}}
    gateway.ask(
        [
            _user("Pay Ilse Varga with 4111 1111 1111 1111."),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
        ],
        "fault-B63",
    )
    first, second = gateway.upstream.bodies[-1]["messages"][:2]
    leaves = json.loads(second["tool_calls"][0]["function"]["arguments"])
    assert first["content"] == f"Pay {leaves['to']} with {leaves['card']}."
    assert leaves["card"] != "4111 1111 1111 1111"


def test_B80_a_late_event_of_an_earlier_turn(scripted: Gateway) -> None:
    """Turn 2 draws while turn 1 still streams; each event gets its own turn's names."""
    first_is_open, second_is_done = threading.Event(), threading.Event()

    def script(handler: Handler, body: Body) -> None:
        name = body["messages"][-1]["content"].removeprefix("Greet ").removesuffix(".")
        if len(body["messages"]) > 1:
            send_message(handler, body, {"content": f"Hello {name}!"}, 1)
            return
        open_stream(handler, delta_frame({"content": f"Hello {name[:2]}"}))
        first_is_open.set()
        second_is_done.wait(10)
        handler.wfile.write(delta_frame({"content": f"{name[2:]}!"}))
        handler.wfile.write(delta_frame({}, "stop") + b"data: [DONE]\n\n")

    scripted.upstream.script = script
    answers: list[str] = []
    turn = threading.Thread(
        target=lambda: answers.append(scripted.ask("Greet Ilse.", "fault-B80", True))
    )
    turn.start()
    assert first_is_open.wait(10)
    history = [
        _user("Greet Ilse."),
        {"role": "assistant", "content": "Hello"},
        _user("Greet Tadeo."),
    ]
    assert scripted.ask(history, "fault-B80", True) == "Hello Tadeo!"
    second_is_done.set()
    turn.join(10)
    assert answers == ["Hello Ilse!"]


def test_B81_two_keys_share_no_session(gateway: Gateway) -> None:
    other_key, _ = gateway.services.keys.create("client", "acme")
    body = {"model": "test-model", "messages": [_user("I am Ilse Varga.")]}
    sessions = []
    for key in (gateway.key, other_key, gateway.key):
        response = httpx.post(
            f"{gateway.url}/chat/completions",
            json=body,
            headers={"authorization": f"Bearer {key}", "x-forwarded-for": "203.0.113.7"},
        )
        sessions.append(response.headers["x-penname-session"])
    assert sessions[0] == sessions[2] != sessions[1]
    body["messages"] = [_user("I am Ilse Varga, again.")]
    assert gateway.post(body).headers["x-penname-session"] != sessions[0]


def test_B85_all_messages_are_scanned(gateway: Gateway) -> None:
    messages = [
        _user("I am Ilse Varga"),
        {"role": "assistant", "content": "Hi, Tadeo Brandt is waiting"},
        _user("write my bio"),
    ]
    gateway.ask(messages, "fault-B85")
    sent = "".join(_contents(gateway))
    assert found_in(sent, ("Ilse", "Varga", "Tadeo", "Brandt")) == []


def test_B77_traces_show_no_original_by_themselves(gateway: Gateway) -> None:
    start = len(gateway.events)
    with kept_log() as log:
        gateway.ask("What did Dr Varga sign?", "fault-B77")
    sanitised = next(e for e in gateway.events[start:] if isinstance(e, Sanitised))
    assert "Varga" in sanitised.entities[0].original  # for who may re-identify, by name only
    assert found_in(sanitised.payload, ("Varga",)) == []
    assert "Varga" not in repr(gateway.events[start:]) + "".join(log.lines)
