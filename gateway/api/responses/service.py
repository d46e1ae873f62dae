"""The work of a response: its conversation, its answer as object or events, and keeping it."""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from connectors.base import UpstreamError
from gateway.api.chat.service import api_error
from gateway.api.responses.items import Item, check_calls, read_input
from gateway.api.responses.objects import failed, finished, opened, shown
from gateway.api.responses.output import Event, Output
from gateway.api.responses.schema import ResponsesRequest, check_include
from gateway.api.responses.stored import earlier_turns, spoken
from gateway.api.responses.translate import chat_body
from gateway.errors import ApiError, bad_request, unavailable
from gateway.retrieve import Question, last_question
from gateway.services import Services
from gateway.session_id import named_session
from gateway.work import in_worker
from store.errors import StoreError
from store.models import new_id

_log = logging.getLogger(__name__)
_UNEXPECTED = {
    "code": "internal_error",
    "message": "An unexpected error occurred.",
    "param": None,
}
_NOT_STORED = (
    "The answer could not be stored, so it is withheld; try again, or send 'store': false."
)


@dataclass(frozen=True)
class Turn:
    """A request with its conversation.

    Attributes:
        items: The input of this turn.
        chat: The equivalent chat request, earlier turns included.
    """

    request: ResponsesRequest = field(repr=False)
    items: list[Item] = field(repr=False)
    chat: dict[str, Any] = field(repr=False)


def read_turn(
    services: Services, tenant_id: str, request: ResponsesRequest, headers: Mapping[str, str]
) -> Turn:
    """Read the input and, when it continues a response, what came before it.

    Raises:
        ApiError: 400 for input that can not be given to a model, for a response that there is not,
            and for one that belongs to another session than the client names.
    """
    items = read_input(request.input)
    before: list[Item] = []
    session: str | None = None
    if request.previous_response_id is not None:
        turns = earlier_turns(services, tenant_id, request.previous_response_id)
        session = turns[-1].session_id
        named = named_session(headers, _naming(request))
        if named not in (None, session):
            raise bad_request(
                "previous_response_id belongs to another session than this request names; leave one of "
                "them out.",
                "previous_response_id",
            )
        before = [item for turn in turns for item in spoken(turn)]
    whole = [*before, *items]
    check_calls(whole)
    return Turn(request, items, chat_body(request, whole, session))


def _naming(request: ResponsesRequest) -> dict[str, Any]:
    return {"penname": request.penname, "metadata": request.metadata}


class Answering:
    """One response on its way: from the chunks of an answer to objects, events and the store.

    Args:
        session_id: The session to keep it in, and when that was created.
        model: The public name of the model that was asked.
        question: The context that was added to the request.
    """

    def __init__(
        self,
        services: Services,
        tenant_id: str,
        session_id: str,
        session_created_at: float,
        turn: Turn,
        model: str,
        question: Question | None = None,
    ) -> None:
        self._services = services
        self._tenant_id = tenant_id
        self._session_id = session_id
        self._session_created_at = session_created_at
        self._turn = turn
        self._include = check_include(turn.request.include or [])
        self._response = opened(turn.request, new_id("resp_"), time.time(), model)
        self._output = Output(_search(turn, question) if turn.request.searches else None)
        self._number = 0

    async def whole(self, completion: dict[str, Any]) -> dict[str, Any]:
        """Return the response of a completion.  Raises ApiError."""
        try:
            self._output.feed(completion)
        except UpstreamError as error:
            raise api_error(error) from None
        if not completion["choices"]:
            raise api_error(UpstreamError("malformed"))
        list(self._output.close())
        return await self._done()

    async def _done(self) -> dict[str, Any]:
        response = finished(self._response, self._output, time.time())
        if self._turn.request.stored:
            response["store"] = await self._keep(response)
        return shown(response, self._include)

    async def _keep(self, response: dict[str, Any]) -> bool:
        """Store the turn; False when its session was forgotten meanwhile."""

        def work() -> bool:
            return self._services.responses.add(
                self._tenant_id,
                self._session_id,
                response["id"],
                self._turn.request.previous_response_id,
                {"response": response, "input": self._turn.items},
                session_created_at=self._session_created_at,
            )

        try:
            return await in_worker(self._services.workers, work)
        except StoreError:
            raise unavailable(_NOT_STORED, "store_unavailable") from None

    async def events(
        self, chunks: AsyncIterator[dict[str, Any]], refused: Callable[[ApiError], None]
    ) -> AsyncGenerator[bytes, None]:
        """Yield the frames of a streamed answer; a failure in mid-stream is ``response.failed``,
        an unexpected one ``error``.

        Args:
            chunks: Restored chunks; may raise ApiError.
            refused: Told of a failure.
        """
        try:
            for kind in ("response.created", "response.in_progress"):
                yield self._frame({"type": kind, "response": self._response})
            for frame in self._frames(self._output.begin()):
                yield frame
            async for chunk in chunks:
                for frame in self._frames(self._output.feed(chunk)):
                    yield frame
            for frame in self._frames(self._output.close()):
                yield frame
            response = await self._done()
        except (ApiError, UpstreamError) as error:
            told = error if isinstance(error, ApiError) else api_error(error)
            refused(told)
            code = "rate_limit_exceeded" if told.status == 429 else "server_error"
            response = failed(self._response, self._output, code, told.message)
            response = shown(response, self._include)
        except Exception as error:
            # Neither text nor traceback: both may quote the answer.
            _log.error("a streamed response failed: %s", type(error).__name__)
            yield self._frame({"type": "error", **_UNEXPECTED})
            return
        yield self._frame({"type": f"response.{response['status']}", "response": response})

    def _frames(self, events: Iterable[Event]) -> list[bytes]:
        return [self._frame(event) for event in events]

    def _frame(self, event: Event) -> bytes:
        if isinstance(event.get("item"), dict):
            event = {
                **event,
                "item": shown({"output": [event["item"]]}, self._include)["output"][0],
            }
        numbered = {"type": event["type"], "sequence_number": self._number, **event}
        self._number += 1
        kind: str = event["type"]
        return b"event: " + kind.encode() + b"\ndata: " + orjson.dumps(numbered) + b"\n\n"


def _search(turn: Turn, question: Question | None) -> dict[str, Any]:
    """Return the search of vector stores as the item that clients look for."""
    _, text = last_question(turn.chat)
    results = [
        {"file_id": c.file_id, "filename": c.filename, "score": c.score, "text": c.text}
        for c in (question.chunks if question is not None else ())
    ]
    return {
        "id": new_id("fs_"),
        "type": "file_search_call",
        "status": "completed",
        "queries": [text] if text.strip() else [],
        "results": results,
    }
