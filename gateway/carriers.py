"""Every place of a request that can carry text, found by walking the whole body.

The walk is closed-world: a string is either one of the few structural values below, in the narrow
form such values have, or it is text and gets scanned. So a field that OpenAI adds tomorrow is
scanned, not forwarded unseen.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

Path = tuple[str | int, ...]

# Values of these keys name things of the protocol, as long as they look like it.
_STRUCTURAL = frozenset(
    "role type id tool_call_id model object finish_reason format reasoning_effort verbosity effort "
    "service_tier detail tool_choice function_call strict encoding_format syntax mode $ref $schema "
    "search_context_size prompt_cache_retention".split()
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9_./:#$\-]{1,128}")
_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_\-]{1,64}")
_LIST_OF_NAMES = frozenset(("required", "modalities", "include"))
_PLAIN_KEY = re.compile(r"[a-z0-9_$.\-]*|[a-z]+(?:[A-Z][a-z0-9]*)*")
_DATA_URL = re.compile(r"data:[\w.+\-]+/[\w.+\-]+(?:;[\w=\-]+)*;base64,", re.IGNORECASE)
_LONG_NUMBER = 10**6


@dataclass(frozen=True, slots=True)
class Slot:
    """One text of a request.

    Attributes:
        text: The text.
        echo: Whether it may quote substitutes issued before (what a client resends).
        detect: Whether detectors look at it; known entities are swept everywhere.
    """

    text: str
    echo: bool = True
    detect: bool = True

    @property
    def reading(self) -> str:
        """How the text is read: two slots of one text and one reading come out alike."""
        return f"{'echo' if self.echo else 'own'}{'' if self.detect else ' swept'}"


def slots_of(body: dict[str, Any]) -> list[Slot]:
    """Return the texts of ``body``, in the order in which `replaced` takes them back."""
    found: list[Slot] = []

    def see(slot: Slot) -> str:
        found.append(slot)
        return slot.text

    _walk_body(body, see)
    return found


def replaced(body: dict[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Return a copy of ``body`` with its texts replaced, in the order of `slots_of`."""
    source: Iterator[str] = iter(texts)
    result: dict[str, Any] = _walk_body(body, lambda slot: next(source))
    return result


def _walk_body(body: dict[str, Any], visit: Callable[[Slot], str]) -> Any:
    return {key: _walk(value, (key,), visit, _echoes(key)) for key, value in body.items()}


def _echoes(key: str) -> bool:
    return key in ("messages", "prediction")


def _walk(value: Any, path: Path, visit: Callable[[Slot], str], echo: bool) -> Any:
    if isinstance(value, str):
        return _string(value, path, visit, echo)
    if isinstance(value, dict):
        if path[:1] == ("messages",) and len(path) == 2:
            echo = value.get("role") not in ("system", "developer")
        return {
            _key(key, path, visit, echo): _walk(child, (*path, key), visit, echo)
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [_walk(child, (*path, i), visit, echo) for i, child in enumerate(value)]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LONG_NUMBER:
        return _number(value, path, visit, echo)
    return value


def _string(value: str, path: Path, visit: Callable[[Slot], str], echo: bool) -> Any:
    key = _last_key(path)
    if key == "arguments":
        return _arguments(value, visit, echo)
    if _is_structural(key, path, value) or _DATA_URL.match(value):
        return value
    return visit(Slot(value, echo))


def _is_structural(key: str, path: Path, value: str) -> bool:
    if key in _STRUCTURAL or (key == "type" and _IDENTIFIER.fullmatch(value)):
        return bool(_IDENTIFIER.fullmatch(value))
    if key == "name" and len(path) >= 2 and path[-2] in ("function", "json_schema", "custom"):
        return bool(_FUNCTION_NAME.fullmatch(value))
    if key == "name" and path[:1] in (("functions",), ("function_call",)):
        return bool(_FUNCTION_NAME.fullmatch(value))
    return key in _LIST_OF_NAMES and bool(_PLAIN_KEY.fullmatch(value))


def _last_key(path: Path) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _key(key: str, path: Path, visit: Callable[[Slot], str], echo: bool) -> str:
    """A key can be a name too: ``{"Ilse Varga": 4}``.  The protocol's own keys are plain words."""
    if path[:1] == ("messages",) and "arguments" not in path and _PLAIN_KEY.fullmatch(key):
        return key
    return visit(Slot(key, echo, detect=not _PLAIN_KEY.fullmatch(key)))


def _number(value: int, path: Path, visit: Callable[[Slot], str], echo: bool) -> Any:
    """A long number may be an account: it keeps its type where the surrogate is a number."""
    if path[:1] in (("seed",), ("max_tokens",), ("max_completion_tokens",), ("logit_bias",)):
        return value
    text = visit(Slot(str(value), echo))
    return int(text) if re.fullmatch(r"-?[1-9]\d*", text) else text


def _arguments(value: str, visit: Callable[[Slot], str], echo: bool) -> str:
    """Tool-call arguments are JSON in a string: walked leaf by leaf, written as JSON again."""
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return visit(Slot(value, echo))
    if not isinstance(parsed, dict | list):
        return visit(Slot(value, echo))
    return orjson.dumps(_walk(parsed, ("arguments",), _nested(visit), echo)).decode()


def _nested(visit: Callable[[Slot], str]) -> Callable[[Slot], str]:
    """Look inside JSON that an argument holds as a string."""

    def look(slot: Slot) -> str:
        text = slot.text
        if text[:1] in "{[" and len(text) > 2:
            try:
                parsed = orjson.loads(text)
            except orjson.JSONDecodeError:
                return visit(slot)
            if isinstance(parsed, dict | list):
                inner = _walk(parsed, ("arguments",), look, slot.echo)
                return orjson.dumps(inner).decode()
        return visit(slot)

    return look


def strings_of(value: Any) -> Iterator[str]:
    """Yield every string, key and number of a JSON value as text: what the guard reads."""
    if isinstance(value, str):
        yield value
        if value[:1] in "{[":
            try:
                yield from strings_of(orjson.loads(value))
            except orjson.JSONDecodeError:
                return
    elif isinstance(value, dict):
        for key, child in value.items():
            yield key
            yield from strings_of(child)
    elif isinstance(value, list):
        for child in value:
            yield from strings_of(child)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
