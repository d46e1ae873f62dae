"""Documents: what is retrieved travels under a pen name, too, and tool arguments stay JSON."""

import io
import json
from typing import Any

import pytest
from e2e_gateway import found_in

DOCUMENT = (
    "The supply contract was signed by Séverine Blanchet on 17 February 2026 in Basel. "
    "Her address is s.blanchet@corp.internal and her phone is +1 212-555-0142."
)


def test_retrieved_context_is_sanitised_and_restored(gateway: Any) -> None:
    client = gateway.client()
    upload = client.files.create(
        file=("contract.txt", io.BytesIO(DOCUMENT.encode())), purpose="assistants"
    )
    store = client.vector_stores.create(name="contracts")
    client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=upload.id)
    found = client.vector_stores.search(vector_store_id=store.id, query="Who signed?")
    assert "Blanchet" in found.data[0].content[0].text
    answer = client.chat.completions.create(
        model="test-model",
        messages=[{"role": "user", "content": "Who signed the supply contract?"}],
        extra_body={"penname": {"vector_store_ids": [store.id]}},
        extra_headers={"x-penname-session": "retrieval"},
    )
    raw = gateway.upstream.requests[-1].decode()
    for original in (
        "Séverine",
        "S\\u00e9verine",
        "Blanchet",
        "blanchet",
        "corp.internal",
        "212-555-0142",
    ):
        assert found_in(raw, (original,)) == []
    assert "supply contract" in raw
    assert "penname" not in json.dumps(gateway.upstream.bodies[-1])
    assert DOCUMENT in (answer.choices[0].message.content or "")


def test_tool_arguments_are_replaced_leaf_by_leaf(gateway: Any) -> None:
    arguments = json.dumps({"to": "Tadeo Brandt", "mail": "tadeo@example.com", "n": 2})
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "send", "arguments": arguments},
    }
    gateway.client().chat.completions.create(
        model="test-model",
        messages=[
            {"role": "user", "content": "Write to Tadeo Brandt at tadeo@example.com."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "Sent to Tadeo Brandt."},
            {"role": "user", "content": "Thanks."},
        ],
        extra_headers={"x-penname-session": "tools"},
    )
    raw = gateway.upstream.requests[-1].decode()
    for original in ("Tadeo", "Brandt", "tadeo"):
        assert found_in(raw, (original,)) == []
    sent = gateway.upstream.bodies[-1]["messages"][1]["tool_calls"][0]
    assert sent["id"] == "call_1"
    leaves = json.loads(sent["function"]["arguments"])
    assert set(leaves) == {"to", "mail", "n"}
    assert leaves["n"] == 2
    assert leaves["to"] in gateway.upstream.bodies[-1]["messages"][0]["content"]


@pytest.mark.parametrize("rest", [{"type": "text"}, {"type": "text", "text": None}])
def test_a_part_without_text_is_no_question(gateway: Any, rest: dict[str, Any]) -> None:
    client = gateway.client()
    upload = client.files.create(
        file=("contract.txt", io.BytesIO(DOCUMENT.encode())), purpose="assistants"
    )
    store = client.vector_stores.create(name="contracts")
    client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=upload.id)
    body = {
        "model": "test-model",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Who signed?"}, rest]}],
        "penname": {"vector_store_ids": [store.id]},
    }
    assert gateway.post(body, "retrieval-parts").status_code == 200
    sent = gateway.upstream.bodies[-1]["messages"][0]["content"]
    assert "Who signed?" in sent[0]["text"]
    assert "supply contract" in sent[0]["text"]
    assert sent[1] == rest


def test_a_client_can_ask_for_fewer_chunks(gateway: Any) -> None:
    client = gateway.client()
    store = client.vector_stores.create(name="pairs")
    for text in ("The lease ends in May.", "The lease began in June."):
        upload = client.files.create(
            file=("l.txt", io.BytesIO(text.encode())), purpose="assistants"
        )
        client.vector_stores.files.create_and_poll(vector_store_id=store.id, file_id=upload.id)
    for asked, found in ((None, 2), (1, 1), (50, 2)):
        extension = {"vector_store_ids": [store.id]} | ({"max_num_results": asked} if asked else {})
        gateway.ask("When does the lease end?", "fewer", extra_body={"penname": extension})
        assert gateway.upstream.requests[-1].decode().count("The lease ") == found
    for wrong in (0, "1", True, 1.5):
        body = {
            "model": "test-model",
            "messages": [{"role": "user", "content": "x"}],
            "penname": {"vector_store_ids": [store.id], "max_num_results": wrong},
        }
        response = gateway.post(body, "fewer")
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "penname.max_num_results"
