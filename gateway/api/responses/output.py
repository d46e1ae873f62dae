"""The output of a response while it grows: chat deltas in, items and stream events out.

A whole completion is read as one delta, so that both ways give the same items.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from connectors.base import UpstreamError
from gateway.respond import index_of
from store.models import new_id

Event = dict[str, Any]
_FIELDS: Final = {"output_text": "text", "refusal": "refusal"}
# What reading a delta of another shape than OpenAI's raises.
_SHAPELESS: Final = (ValueError, AttributeError, TypeError, LookupError)


@dataclass
class _Message:
    """The assistant's message; parts are [kind, text] in the order of their first text."""

    index: int
    id: str = field(default_factory=lambda: new_id("msg_"))
    parts: list[list[str]] = field(default_factory=list, repr=False)

    def item(self, status: str) -> dict[str, Any]:
        content = [_part(kind, text) for kind, text in self.parts]
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }


@dataclass
class _Call:
    """A function call."""

    index: int
    call_id: str
    name: str
    has_told_id: bool
    arguments: str = field(default="", repr=False)
    id: str = field(default_factory=lambda: new_id("fc_"))

    def item(self, status: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "function_call",
            "status": status,
            "call_id": self.call_id,
            "name": self.name,
            "arguments": self.arguments,
        }


class Output:
    """Collects an answer.

    Args:
        search: A finished ``file_search_call`` to begin with.

    Attributes:
        finish: The upstream's finish reason.
        usage: The upstream's usage, None when it told none.
        model: The public name of the model that answers.
        extension: What the upstream's connector told under ``penname``.
    """

    def __init__(self, search: dict[str, Any] | None = None) -> None:
        self.finish: str | None = None
        self.usage: dict[str, Any] | None = None
        self.model: str | None = None
        self.extension: dict[str, Any] | None = None
        self._search = search
        self._message: _Message | None = None
        self._calls: dict[int, _Call] = {}  # the last one of each index
        self._all_calls: list[_Call] = []
        self._count = 1 if search else 0

    def begin(self) -> Iterator[Event]:
        """Yield the events of what is there before the model answers."""
        if self._search is None:
            return
        where = {"item_id": self._search["id"], "output_index": 0}
        yield _added(0, {**self._search, "status": "in_progress", "results": None})
        for step in ("in_progress", "searching", "completed"):
            yield {"type": f"response.file_search_call.{step}", **where}
        yield {"type": "response.output_item.done", "output_index": 0, "item": self._search}

    def feed(self, chunk: dict[str, Any]) -> list[Event]:
        """Take a restored chunk, or a restored completion; return the events that it brings.

        Raises:
            UpstreamError: ``malformed`` when it has not the shape that OpenAI promises.
        """
        try:
            return list(self._feed(chunk))
        except _SHAPELESS:
            raise UpstreamError("malformed") from None

    def _feed(self, chunk: dict[str, Any]) -> Iterator[Event]:
        self.model = chunk.get("model") or self.model
        self.usage = chunk.get("usage") or self.usage
        self.extension = chunk.get("penname") or self.extension
        for place, choice in enumerate(chunk.get("choices") or ()):
            if index_of(choice, place) != 0:
                continue
            # The calls of a message are told apart by their places, those of deltas by their index.
            streamed = "delta" in choice
            delta = choice["delta"] if streamed else choice["message"]
            yield from self._say("output_text", _content(delta.get("content")))
            yield from self._say("refusal", _text(delta.get("refusal")))
            for position, call in enumerate(_calls_of(delta)):
                yield from self._call(index_of(call, position) if streamed else position, call)
            self.finish = _text(choice.get("finish_reason")) or self.finish

    def _say(self, kind: str, text: str) -> Iterator[Event]:
        if text:
            yield from self._open(kind)
            message = self._opened()
            number = next(i for i, part in enumerate(message.parts) if part[0] == kind)
            message.parts[number][1] += text
            yield {**_delta(kind, text), **_where(message, number)}

    def _opened(self) -> _Message:
        if self._message is None:
            self._message = _Message(self._count)
            self._count += 1
        return self._message

    def _open(self, kind: str) -> Iterator[Event]:
        is_new = self._message is None
        message = self._opened()
        if is_new:
            yield _added(message.index, message.item("in_progress"))
        if kind not in [part[0] for part in message.parts]:
            message.parts.append([kind, ""])
            where = _where(message, len(message.parts) - 1)
            yield {"type": "response.content_part.added", **where, "part": _part(kind, "")}

    def _call(self, key: int, given: dict[str, Any]) -> Iterator[Event]:
        function = given["function"]
        call = self._calls.get(key)
        if call is None or _is_another(call, given):
            name = _text(function["name"])
            if not name:
                raise ValueError("a call without a name")
            told_id = _text(given.get("id"))
            call = _Call(self._count, told_id or new_id("call_"), name, bool(told_id))
            self._calls[key] = call
            self._all_calls.append(call)
            self._count += 1
            yield _added(call.index, call.item("in_progress"))
        arguments = _text(function.get("arguments"))
        if arguments:
            call.arguments += arguments
            where = {"item_id": call.id, "output_index": call.index}
            kind = "response.function_call_arguments.delta"
            yield {"type": kind, **where, "delta": arguments}

    def close(self) -> Iterator[Event]:
        """Yield the events that end the items; an answer of nothing is an empty message."""
        if self._message is None and not self._calls:
            yield from self._open("output_text")
        status = self.item_status
        for thing in self._items():
            where = {"item_id": thing.id, "output_index": thing.index}
            item = thing.item(status)
            if isinstance(thing, _Call):
                told = {"arguments": thing.arguments}
                yield {"type": "response.function_call_arguments.done", **where, **told}
            else:
                for number, part in enumerate(item["content"]):
                    yield from _part_done(part, {**where, "content_index": number})
            yield {"type": "response.output_item.done", "output_index": thing.index, "item": item}

    def _items(self) -> list[_Message | _Call]:
        message: list[_Message | _Call] = [self._message] if self._message else []
        return sorted([*message, *self._all_calls], key=lambda thing: thing.index)

    @property
    def incomplete_reason(self) -> str | None:
        """Why the answer is not whole, None when it is."""
        reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
        return reasons.get(self.finish or "")

    @property
    def item_status(self) -> str:
        return "incomplete" if self.incomplete_reason else "completed"

    def items(self, status: str | None = None) -> list[dict[str, Any]]:
        """Return the items, the search first."""
        search = [self._search] if self._search else []
        return [*search, *(thing.item(status or self.item_status) for thing in self._items())]


def _calls_of(delta: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message or delta, the one in the older field, too."""
    older = delta.get("function_call")
    calls: list[dict[str, Any]] = delta.get("tool_calls") or (
        [{"function": older}] if older else []
    )
    return calls


def _is_another(call: _Call, given: dict[str, Any]) -> bool:
    """Whether a call begins where another one stands: some servers give every call the index 0."""
    named = bool(given["function"].get("name"))
    return named and call.has_told_id and given.get("id") not in (None, "", call.call_id)


def _content(value: Any) -> str:
    """Return a content as text: some servers tell it in parts, thoughts among them."""
    if not isinstance(value, list):
        return _text(value)
    # What restoration held back comes as a part without a type.
    texts = [part.get("text") for part in value if part.get("type", "text") == "text"]
    return "".join(map(_text, texts))


def _text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError("a text that is none")
    return value or ""


def _part(kind: str, text: str) -> dict[str, Any]:
    if kind == "refusal":
        return {"type": kind, "refusal": text}
    return {"type": kind, "text": text, "annotations": [], "logprobs": []}


def _where(message: _Message, number: int) -> Event:
    return {"item_id": message.id, "output_index": message.index, "content_index": number}


def _added(index: int, item: dict[str, Any]) -> Event:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _delta(kind: str, text: str) -> Event:
    extra: Event = {"logprobs": []} if kind == "output_text" else {}
    return {"type": f"response.{kind}.delta", "delta": text, **extra}


def _part_done(part: dict[str, Any], where: Event) -> Iterator[Event]:
    kind = part["type"]
    extra: Event = {"logprobs": []} if kind == "output_text" else {}
    told = {_FIELDS[kind]: part[_FIELDS[kind]], **extra}
    yield {"type": f"response.{kind}.done", **where, **told}
    yield {"type": "response.content_part.done", **where, "part": part}
