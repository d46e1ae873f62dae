"""A real client, a real gateway, a recording upstream: what leaves, what comes back, what it costs."""

import itertools
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from e2e_gateway import found_in
from openai import APIStatusError, AsyncOpenAI, NotFoundError, OpenAI

from store.ledger import Ledger

GIVEN = ["Ilse", "Tadeo", "Amina", "Séverine", "Björn", "Priya", "Imogen", "Henrik"]
FAMILY = ["Varga", "Brandt", "Okonkwo", "Blanchet", "Østergaard", "Raghunathan", "Petrescu"]
TEMPLATES = [
    "Please write to {name} at {mail} about the contract.",
    "My name is {name} and my phone number is {phone}.",
    "{name} met {other} on Monday. Ask {other} about it.",
    "SIGNED: {upper}, TREASURER. The policy number is {id}.",
    "Dear Dr. {name}, the patient record MRN {id} belongs to {other}.",
]


def _texts(rng: random.Random) -> tuple[list[str], list[str]]:
    """Return the user turns of one conversation, and the originals they hold."""
    given, other_given = rng.sample(GIVEN, 2)
    family, other_family = rng.sample(FAMILY, 2)
    name, other = f"{given} {family}", f"{other_given} {other_family}"
    mail = f"{given[:1].lower()}.{rng.randrange(10**6)}@corp{rng.randrange(999)}.internal"
    phone = f"+1 212-555-01{rng.randrange(10, 99)}"
    number = f"{rng.randrange(10**7, 10**8)}"
    values = dict(name=name, other=other, mail=mail, phone=phone, id=number, upper=name.upper())
    turns = [rng.choice(TEMPLATES).format(**values) for _ in range(rng.randint(1, 6))]
    joined = " ".join(turns)
    originals = [v for v in (given, family, other_given, other_family) if v in joined]
    originals += [v.upper() for v in (given, family) if v.upper() in joined]
    originals += [v for v in (mail, phone, number) if v in joined]
    return turns, originals


def _ask(client: OpenAI, messages: list[Any], session: str, stream: bool) -> str:
    headers = {"x-penname-session": session}
    if not stream:
        done = client.chat.completions.create(
            model="test-model", messages=messages, extra_headers=headers
        )
        return done.choices[0].message.content or ""
    chunks = client.chat.completions.create(
        model="test-model", messages=messages, extra_headers=headers, stream=True
    )
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


@pytest.mark.parametrize("seed", range(200))
def test_no_original_leaves_and_every_reply_is_restored(gateway: Any, seed: int) -> None:
    rng = random.Random(seed)
    client = gateway.client()
    turns, originals = _texts(rng)
    session = f"conversation-{seed}"
    messages: list[Any] = []
    start = len(gateway.upstream.requests)
    for number, text in enumerate(turns):
        messages.append({"role": "user", "content": text})
        answer = _ask(client, messages, session, stream=bool((seed + number) % 2))
        assert answer == f"You wrote: {text} Thank you."
        messages.append({"role": "assistant", "content": answer})
    snapshot = gateway.services.sessions.get("acme", session)
    issued = {e.substitute.casefold() for e in snapshot.entries}
    for raw in gateway.upstream.requests[start:]:
        sent = raw.decode().casefold()
        for original in originals:
            assert original.casefold() in issued or not found_in(sent, (original.casefold(),))
    drawn = [e for e in snapshot.entries if e.fine_type not in ("person.mention", "loc.address")]
    keys = [(e.fine_type, e.key) for e in drawn]
    assert len(keys) == len(set(keys))
    substitutes = [e.substitute.casefold() for e in drawn if e.fine_type != "person.initial"]
    assert len(substitutes) == len(set(substitutes))
    rows = Ledger(gateway.services.db).rows("acme", session)
    assert len([r for r in rows if r.metric != "days"]) == len(drawn)
    assert sum(r.epsilon for r in rows if r.metric != "days") == pytest.approx(
        snapshot.spent_epsilon
    )


def test_a_name_known_later_is_replaced_in_the_resent_history(gateway: Any) -> None:
    client = gateway.client()
    first = {"role": "user", "content": "The zubrek shelf is full, and so is the zubrekian shelf."}
    _ask(client, [first], "known-later", False)
    assert "The zubrek shelf" in gateway.upstream.bodies[-1]["messages"][0]["content"]
    later = {"role": "user", "content": "My colleague is Mr Aldo Zubrek."}
    for _ in range(2):
        _ask(client, [first, later], "known-later", True)
        raw = gateway.upstream.requests[-1].decode().casefold()
        assert "zubrek " not in raw
        assert "zubrekian shelf" in raw


def test_a_forgotten_session_starts_anew_under_the_same_id(gateway: Any) -> None:
    client = gateway.client()
    message = [{"role": "user", "content": "Tell Ilse Varga that Tadeo Brandt called."}]
    headers = {"authorization": f"Bearer {gateway.key}"}
    for _ in range(3):
        answer = _ask(client, message, "anew", False)
        assert answer == f"You wrote: {message[0]['content']} Thank you."
        raw = gateway.upstream.requests[-1].decode()
        assert "Varga" not in raw and "Brandt" not in raw
        assert gateway.services.sessions.get("acme", "anew").entries
        httpx.delete(f"{gateway.url}/privacy/sessions/anew", headers=headers).raise_for_status()


def test_a_resent_request_costs_nothing(gateway: Any) -> None:
    client = gateway.client()
    message = [{"role": "user", "content": "Tell Ilse Varga that Tadeo Brandt called."}]
    spent = []
    for _ in range(3):
        raw = client.chat.completions.with_raw_response.create(
            model="test-model", messages=message, extra_headers={"x-penname-session": "resent"}
        )
        spent.append(raw.headers["x-penname-epsilon-spent"])
    assert len(set(spent)) == 1
    assert float(spent[0]) > 0


async def test_the_async_client_streams(gateway: Any) -> None:
    client = AsyncOpenAI(base_url=gateway.url, api_key=gateway.key, max_retries=0)
    text = "Greet Priya Raghunathan for me."
    stream = await client.chat.completions.create(
        model="test-model", messages=[{"role": "user", "content": text}], stream=True
    )
    answer = "".join([c.choices[0].delta.content or "" async for c in stream])
    await client.close()
    assert answer == f"You wrote: {text} Thank you."
    assert found_in(gateway.upstream.requests[-1], ("Raghunathan",)) == []


def test_concurrent_conversations_do_not_mix(gateway: Any) -> None:
    client = gateway.client()

    def one(k: int) -> str:
        text = f"I am Imogen Varga{k}, greet me."
        return _ask(client, [{"role": "user", "content": text}], f"parallel-{k}", k % 2 == 0)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(24)))
    assert answers == [f"You wrote: I am Imogen Varga{k}, greet me. Thank you." for k in range(24)]


def test_two_requests_of_one_session_agree(gateway: Any) -> None:
    client = gateway.client()
    text = "Okonkwo and Blanchet wrote to Amina Okonkwo."
    start = len(gateway.upstream.bodies)
    with ThreadPoolExecutor(6) as pool:
        list(
            pool.map(
                lambda _: _ask(client, [{"role": "user", "content": text}], "shared", False),
                range(6),
            )
        )
    sent = {body["messages"][-1]["content"] for body in gateway.upstream.bodies[start:]}
    assert len(sent) == 1


def test_client_fingerprints_and_person_fields_stay_here(gateway: Any) -> None:
    client = gateway.client()
    client.chat.completions.create(
        model="test-model",
        messages=[{"role": "user", "content": "Hello", "name": "Ilse_Varga"}],
        user="ilse.varga@example.com",
        metadata={"penname_session": "fields", "owner": "Ilse Varga"},
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "send",
                    "description": "Writes to Ilse Varga",
                    "parameters": {"type": "object", "properties": {"to": {"type": "string"}}},
                },
            }
        ],
    )
    raw = gateway.upstream.requests[-1].decode()
    for leak in ("Ilse", "Varga", "ilse", "stainless", gateway.key, "penname_session"):
        assert found_in(raw, (leak,)) == []
    assert gateway.upstream.bodies[-1]["tools"][0]["function"]["name"] == "send"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b'{"model": "test-model", "messages": []}', 400),
        (b'{"model": "test-model", "messages": "Ilse Varga"}', 400),
        (b'{"model": 3, "messages": [{"role": "user", "content": "x"}]}', 400),
        (b'{"model": "nope", "messages": [{"role": "user", "content": "x"}]}', 404),
        (b'{"model": "test-model", "messages": [{"role": "user", "content": "\xff"}]}', 400),
        (b"[]", 400),
    ],
)
def test_bad_bodies_have_openai_shape(gateway: Any, content: bytes, status: int) -> None:
    before = len(gateway.upstream.requests)
    response = httpx.post(
        f"{gateway.url}/chat/completions",
        content=content,
        headers={"authorization": f"Bearer {gateway.key}", "content-type": "application/json"},
    )
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert "Ilse" not in response.text
    assert len(gateway.upstream.requests) == before


def test_unknown_urls_keys_and_sessions(gateway: Any) -> None:
    headers = {"authorization": f"Bearer {gateway.key}"}
    for path, status in (("/batches", 404), ("/privacy/sessions/none-such", 404)):
        response = httpx.get(f"{gateway.url}{path}", headers=headers)
        assert response.status_code == status
        assert response.json()["error"]["message"]
    assert httpx.get(f"{gateway.url}/models").status_code == 401
    with pytest.raises(NotFoundError):
        gateway.client().models.retrieve("nope")


def test_upstream_failures_are_told_without_its_words(gateway: Any) -> None:
    client = gateway.client()
    for upstream, told, stream in itertools.product((500, 429, 400), (None,), (False, True)):
        gateway.upstream.fail_with = upstream
        try:
            with pytest.raises(APIStatusError) as caught:
                _ask(client, [{"role": "user", "content": "Hi Ilse Varga"}], "failing", stream)
        finally:
            gateway.upstream.fail_with = 0
        assert told is None
        assert caught.value.status_code == {500: 502, 429: 429, 400: 400}[upstream]
        assert "no" not in caught.value.message.split()


def test_forgetting_a_session(gateway: Any) -> None:
    client = gateway.client()
    _ask(client, [{"role": "user", "content": "Note for Ilse Varga."}], "forget-me", False)
    headers = {"authorization": f"Bearer {gateway.key}"}
    url = f"{gateway.url}/privacy/sessions/forget-me"
    account = httpx.get(url, headers=headers).json()
    assert account["ledger"]["epsilon"] > 0
    assert "Varga" not in httpx.get(url, headers=headers).text
    assert httpx.delete(url, headers=headers).json()["deleted"] is True
    assert httpx.get(url, headers=headers).status_code == 404


def test_reports_of_entities_add_up_to_what_was_spent(gateway: Any) -> None:
    from gateway.events import Sanitised

    seen: list[Sanitised] = []
    gateway.pipeline.events.subscribe(
        lambda e: seen.append(e) if isinstance(e, Sanitised) else None
    )
    client = gateway.client()
    turns = [
        "Aldous met Henrik Aldous of Brunnholt Glaswerke AG.",
        "ALDOUS wrote to Amina Okonkwo.",
    ]
    messages: list[Any] = []
    for text in turns:
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": _ask(client, messages, "adds-up", False)})
    own = [e for e in seen if e.session_id == "adds-up"]
    assert len(own) == 2
    for event in own:
        assert sum(e.epsilon for e in event.entities) == pytest.approx(event.epsilon_charged)
    assert sum(e.epsilon_charged for e in own) == pytest.approx(own[-1].epsilon_spent)
    assert own[-1].epsilon_spent > 0
