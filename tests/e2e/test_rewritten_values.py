"""What a model makes of the values it was given: regrouped, cut, quoted in part."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from e2e_gateway import Gateway
from e2e_upstream import send_message

ORIGINALS = (
    "Ilse Varga",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "536-22-8714",
    "+49 171 2345678",
    "ilse.varga@brandt-logistics.de",
)
PROMPT = "{} pays with card {}, IBAN {}, SSN {}; phone {}, mail {} today"
_SENT = re.compile(re.escape(PROMPT).replace(r"\{\}", "(.*)"))

Values = tuple[str, ...]
REPLIES: dict[str, Callable[[Values], str]] = {
    "in one": lambda v: " / ".join(n.replace(" ", "").replace("-", "") for n in v[1:4]),
    "with hyphens": lambda v: f"{v[1].replace(' ', '-')}, {v[2].replace(' ', '-')}",
    "last four": lambda v: (
        f"the card ending in {v[1][-4:]} (**** **** **** {v[1][-4:]}), xxx-xx-{v[3][-4:]}"
    ),
    "a telephone number": lambda v: (
        f"{v[4].replace(' ', '-')} or 0{v[4][4:]} or 00{v[4][1:]} or {v[4].replace(' ', '.')}"
    ),
    "parts of an address": lambda v: f"account {v[5].split('@')[0]} at {v[5].split('@')[1]}",
    "initial of the family name": lambda v: f"{v[0].split()[0]} {v[0].split()[1][0]}. paid",
    "account": lambda v: f"{v[0].lower().replace(' ', '_')} or {v[0].replace(' ', '_')}",
    "a new address": lambda v: f"billing@{v[5].split('@')[1]}",
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", REPLIES)
def test_rewritten_values_come_back(scripted: Gateway, case: str, stream: bool) -> None:
    def script(handler: Any, body: dict[str, Any]) -> None:
        sent = _SENT.fullmatch(body["messages"][-1]["content"])
        assert sent is not None
        assert set(sent.groups()).isdisjoint(ORIGINALS)
        send_message(handler, body, {"content": REPLIES[case](sent.groups())}, 2)

    scripted.upstream.script = script
    answer = scripted.ask(PROMPT.format(*ORIGINALS), "rewritten", stream)
    assert answer == REPLIES[case](ORIGINALS)
