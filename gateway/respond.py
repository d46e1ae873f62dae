"""Putting originals back into OpenAI's objects, whole or chunk by chunk (DESIGN 4)."""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from connectors.base import UpstreamError
from privacy.restoration import Restorer, StreamRestorer

# The protocol's own values; everything else that is a string may hold a substitute.
_KEPT = frozenset(
    "id object model role type finish_reason system_fingerprint service_tier index created".split()
)
_ARGUMENTS = "arguments"
_CALLS = ("function", "function_call", "custom")
_BLANKS = " \t\r\n"
# What walking an object of another shape than OpenAI's raises.
_SHAPELESS = (ValueError, AttributeError, TypeError, LookupError)
_NONE: Mapping[str, str] = MappingProxyType({})
FieldPath = tuple[str | int, ...]


def restore_completion(
    body: dict[str, Any], restorer: Restorer, model: str, functions: Mapping[str, str] = _NONE
) -> dict[str, Any]:
    """Return a ``chat.completion`` object with originals restored, log probabilities dropped.

    ``functions`` has the client's names of functions that went out under others.

    Log probabilities spell the answer out in the upstream's tokens, which restoration changes.

    Raises:
        UpstreamError: ``malformed`` when the object is no completion.
    """
    choices = body.get("choices")
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise UpstreamError("malformed")
    restored: dict[str, Any] = {
        key: _restore(value, key, restorer, functions) if key != "choices" else value
        for key, value in body.items()
    }
    restored["model"] = model
    restored["choices"] = [
        {
            key: None if key == "logprobs" else _restore(value, key, restorer, functions)
            for key, value in choice.items()
        }
        for choice in choices
    ]
    return restored


def _restore(value: Any, key: str, restorer: Restorer, functions: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        if key in _KEPT:
            return value
        if key == _ARGUMENTS:
            return restorer.restore_json_text(value)
        if _may_be_json(value):
            return restorer.restore_json_text(value, certain=False)
        return restorer.restore(value)
    if isinstance(value, dict):
        return {
            k: functions.get(v, v)
            if key in _CALLS and k == "name" and isinstance(v, str)
            else _restore(v, k, restorer, functions)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_restore(item, key, restorer, functions) for item in value]
    return value


def _may_be_json(text: str) -> bool:
    """Whether a text begins like an object or a list: originals are escaped in its strings."""
    return text.lstrip(_BLANKS)[:1] in ("{", "[")


@dataclass
class Transcript:
    """What came in and what went out, per choice: the content only."""

    received: dict[int, str] = field(repr=False, default_factory=lambda: defaultdict(str))
    restored: dict[int, str] = field(repr=False, default_factory=lambda: defaultdict(str))


class ChunkRestorer:
    """Restores the chunks of one streamed answer; every text field of every choice on its own."""

    def __init__(
        self, restorer: Restorer, model: str, functions: Mapping[str, str] = _NONE
    ) -> None:
        self._restorer = restorer
        self._functions = functions
        self._model = model
        self._open: dict[int, dict[FieldPath, StreamRestorer]] = defaultdict(dict)
        self._names: dict[int, dict[FieldPath, str]] = defaultdict(dict)
        self._template: dict[str, Any] = {}
        # The ends of choices and the usage told with them; some servers end a choice in every chunk.
        self._ended: dict[int, dict[str, Any]] = {}
        self._usage: Any = None
        self.transcript = Transcript()

    def feed(self, chunk: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the chunks that can go to the client now.

        Raises:
            ValueError: the chunk has not the shape of a ``chat.completion.chunk``.
        """
        if not isinstance(chunk.get("choices"), list):
            raise ValueError("a chunk without a list of choices")
        chunk = {**chunk, "model": self._model}
        self._template = {k: v for k, v in chunk.items() if k not in ("choices", "usage")}
        given = chunk["choices"]
        choices = [self._choice(choice) for choice in given]
        if not given:
            # Usage comes when the choices are at their end.
            return [*self.ended(), chunk]
        if chunk.get("usage") and any(choice.get("finish_reason") for choice in given):
            self._usage = chunk.pop("usage")
        if all(_is_empty(c) for c in choices) and not chunk.get("usage"):
            return []
        return [{**chunk, "choices": choices}]

    def finish(self) -> list[dict[str, Any]]:
        """Return what was held back, and the ends of the choices."""
        return self._close(sorted({*self._open, *self._names, *self._ended}))

    def ended(self) -> list[dict[str, Any]]:
        """Return what is left of the choices that the upstream ended."""
        return self._close(sorted(self._ended))

    def _close(self, indices: list[int]) -> list[dict[str, Any]]:
        tails = [self._tail(index) for index in indices]
        ends = [self._ended.pop(index, None) for index in indices]
        out = [{**self._template, "choices": [c]} for c in (*tails, *ends) if c is not None]
        if out and self._usage:
            out[-1]["usage"], self._usage = self._usage, None
        return out

    def _choice(self, choice: dict[str, Any]) -> dict[str, Any]:
        index = choice.get("index", 0)
        delta = choice.get("delta")
        if not isinstance(delta, dict) or not isinstance(index, int):
            raise ValueError("a choice without a delta")
        restored = {k: v for k, v in choice.items() if k not in ("delta", "logprobs")}
        restored["delta"] = {k: self._field(v, (k,), index) for k, v in delta.items()}
        if "logprobs" in choice:
            restored["logprobs"] = None
        self._note(index, delta.get("content"), restored["delta"].get("content"))
        if choice.get("finish_reason"):
            self._ended[index] = {**restored, "delta": {}}
            restored["finish_reason"] = None
            restored["delta"] = restored["delta"] or {"content": ""}
        return restored

    def _field(self, value: Any, path: FieldPath, index: int) -> Any:
        key = path[-1] if isinstance(path[-1], str) else path[-2]
        if isinstance(value, str):
            if key in _KEPT:
                return value
            if key == "name" and any(c in path for c in _CALLS):
                return self._name(path, index, value)
            return self._feed(path, index, value)
        if isinstance(value, dict):
            return {k: self._field(v, (*path, k), index) for k, v in value.items()}
        if isinstance(value, list):
            return [self._field(v, (*path, index_of(v, i)), index) for i, v in enumerate(value)]
        return value

    def _name(self, path: FieldPath, index: int, piece: str) -> str:
        """Restore a function's name, which some servers send in pieces: until it is whole, nothing."""
        held = self._names[index].pop(path, "") + piece
        if held not in self._functions and any(n.startswith(held) for n in self._functions):
            self._names[index][path] = held
            return ""
        return self._functions.get(held, held)

    def _feed(self, path: FieldPath, index: int, text: str) -> str:
        streams = self._open[index]
        if path not in streams:
            # What a text is, is seen at its first character that is no blank.
            if path[-1] != _ARGUMENTS and not text.strip(_BLANKS):
                return text
            certain = path[-1] == _ARGUMENTS
            streams[path] = self._restorer.stream(certain or _may_be_json(text), certain=certain)
        return streams[path].feed(text)

    def _tail(self, index: int) -> dict[str, Any] | None:
        """Close the streams of a choice; return a choice with what they held back, if anything."""
        delta: dict[str, Any] = {}
        held = [(path, stream.finish()) for path, stream in self._open.pop(index, {}).items()]
        for path, text in (*self._names.pop(index, {}).items(), *held):
            if text:
                _put(delta, path, text)
        self._note(index, None, delta.get("content"))
        return {"index": index, "delta": delta, "finish_reason": None} if delta else None

    def _note(self, index: int, received: Any, restored: Any) -> None:
        if isinstance(received, str):
            self.transcript.received[index] += received
        if isinstance(restored, str):
            self.transcript.restored[index] += restored


def index_of(item: Any, place: int) -> int:
    """Return which call or choice an item belongs to: its place where it does not tell.

    Raises:
        TypeError: it tells something that is no number.
    """
    index = item.get("index") if isinstance(item, dict) else None
    if index is not None and not isinstance(index, int):
        raise TypeError("an index that is none")
    return place if index is None else index


def _is_empty(choice: dict[str, Any]) -> bool:
    if choice.get("finish_reason"):
        return False
    delta = choice["delta"]
    return bool(delta) and all(value == "" for value in delta.values())


def _put(delta: dict[str, Any], path: FieldPath, text: str) -> None:
    """Write ``text`` at a path such as ('tool_calls', 0, 'function', 'arguments')."""
    node: Any = delta
    for part, following in zip(path[:-1], path[1:], strict=True):
        if isinstance(following, int):
            node = node.setdefault(part, [])
        elif isinstance(part, int):
            found = next((item for item in node if item.get("index") == part), None)
            if found is None:
                found = {"index": part}
                node.append(found)
            node = found
        else:
            node = node.setdefault(part, {})
    node[path[-1]] = text


async def restored_stream(
    chunks: AsyncIterator[dict[str, Any]], restorer: ChunkRestorer
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the restored chunks of an upstream's answer.

    Raises:
        UpstreamError: the upstream failed, or a chunk has not the shape that OpenAI promises.
    """
    try:
        async for chunk in chunks:
            try:
                restored = restorer.feed(chunk)
            except _SHAPELESS:
                raise UpstreamError("malformed") from None
            for ready in restored:
                yield ready
    except UpstreamError:
        for ready in restorer.ended():
            yield ready
        raise
    for ready in restorer.finish():
        yield ready
