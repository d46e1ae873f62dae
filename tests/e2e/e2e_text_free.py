"""A backend that receives noised rows, and a gateway in front of it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from e2e_gateway import Gateway, running_gateway
from loopback import QuietHandler, send, serving

from connectors.router import LiteLlmParams, ModelEntry
from connectors.token_encoder import MiniLmTokens
from privacy.ppft.wire import unpack

COOKIE = {"set-cookie": "seen=before; Path=/"}


@contextmanager
def text_free_server(fault: Mapping[str, Any]) -> Iterator[tuple[str, list[bytes]]]:
    """A backend that records what reaches it and answers the same to everybody.

    ``fault`` may change in a test: ``models`` and ``part`` replace answers, ``status`` refuses.
    """
    seen: list[bytes] = []
    model = {"name": "mine", "encoder": MiniLmTokens.name, "dimensions": 384, "k": 4}

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            listed = json.dumps(fault.get("models", {"data": [model]})).encode()
            send(self, 200, listed, "application/json", COOKIE)

        def do_POST(self) -> None:
            body = self.body()
            seen.append(f"{self.path}\n{self.headers}".encode() + body)
            if fault.get("status"):
                send(self, fault["status"], b"{}", "application/json", COOKIE)
                return
            part = {"text": "The lease ends in May.", "finish": "stop", "tokens": 6}
            answer = json.dumps(fault.get("part", part)).encode()
            if unpack(body, dimensions=384, k=4, most_slots=512).stream:
                frames = b"data: " + answer + b"\n\ndata: [DONE]\n\n"
                send(self, 200, frames, "text/event-stream", COOKIE)
            else:
                send(self, 200, answer, "application/json", COOKIE)

    with serving(Handler) as url:
        yield url, seen


@contextmanager
def gateway_with(
    folder: Path, fault: Mapping[str, Any] | None = None, address: str = "", **policy: Any
) -> Iterator[tuple[Gateway, list[bytes]]]:
    with text_free_server({} if fault is None else fault) as (url, seen):
        params = LiteLlmParams.model_validate(
            {
                "model": "ppft/mine",
                "api_base": address or url,
                "api_key": "k",
                "k": 4,
                "epsilon": 75.0,
            }
        )
        entry = ModelEntry(model_name="ppft/mine", litellm_params=params)
        with running_gateway(folder, policy=policy or None, models=[entry]) as gateway:
            yield gateway, seen
