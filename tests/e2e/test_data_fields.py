"""Names and numbers among data: keys, columns and calls tell what they are."""

import json
from typing import Any

import pytest
from e2e_gateway import Gateway, found_in

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
