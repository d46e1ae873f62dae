"""Every place of a request that can carry text, found by walking the whole body.

The walk is closed-world: a string is either one of the few structural values below, in the narrow
form such values have, or it is text and gets scanned. So a field that OpenAI adds tomorrow is
scanned, not forwarded unseen.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import orjson

from gateway.json import is_too_deep
from privacy.detection.protected import is_bytes_url

Path = tuple[str | int, ...]

# Values of these keys name things of the protocol, as long as they look like it.
_STRUCTURAL = frozenset(
    "role type id tool_call_id model object finish_reason format reasoning_effort verbosity effort "
    "service_tier detail tool_choice function_call strict encoding_format syntax mode $ref $schema "
    "search_context_size prompt_cache_retention".split()
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9_./:#$\-]{1,128}")
_FILE_ENDING = re.compile(r"[A-Za-z0-9]{1,5}")
_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_\-]{1,64}")
_NO_LETTER = re.compile(r"[^A-Za-z0-9_\-]")
_LONGEST_NAME = 64
_DIGEST = 8
_LIST_OF_NAMES = frozenset(("required", "modalities", "include"))
_PLAIN_KEY = re.compile(r"[a-z0-9_$.\-]*|[a-z]+(?:[A-Z][a-z0-9]*)*")
# Keys that tell what their value is, such as "phone" or "lastName"; "query" and "text" tell nothing.
_LABEL: Final = re.compile(
    r"(?i:[a-z_-]{0,24}(?:name|surname|nachname|phone|mobile|fax|tel|ssn|mrn|iban|card|account|passport|licen[cs]e|"
    r"dob|birth(?:day|date)?|date|policy|patient|member|employee|customer|claim|tax|vat|tin|nhs|dni|"
    r"(?:number|no|nr|id|code))[a-z_-]{0,16})"
)
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Names of calls, repeated where the call is answered; a name is not looked for, a known one is.
_REFERENCES = frozenset(("id", "tool_call_id"))
# Where the protocol's names stand; below a key of _DATA the same keys hold what users write.
_ROOTS = frozenset(
    "messages tools functions tool_choice function_call response_format prediction audio modalities "
    "reasoning text web_search_options include".split()
)
_DATA = frozenset(("arguments", "default", "examples", "enum", "const"))
_CALLED = (("tool_calls", "function", "name"), ("tool_calls", "custom", "name"))
_CALLED_BEFORE = (("function_call", "name"), ("answer", "name"))
_DEEPEST_REFERENCE = len(("messages", 0, "tool_calls", 0, "id"))
_LONG_NUMBER = 10**6


class TooDeep(ValueError):
    """JSON inside a string is nested deeper than can be walked."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One text of a request.

    Attributes:
        text: The text.
        echo: Whether it may quote substitutes issued before (what a client resends).
        detect: Whether detectors look at it; known entities are swept everywhere.
        label: What names the text, ``last name: ``; read before it, since it tells what the text is.
        is_name: Whether it is a function's name, and has to stay one.
    """

    text: str = field(repr=False)
    echo: bool = True
    detect: bool = True
    label: str = ""
    is_name: bool = False

    @property
    def reading(self) -> str:
        """How the text is read: two slots of one text and one reading come out alike."""
        return f"{'echo' if self.echo else 'own'}{'' if self.detect else ' swept'} {self.label}"


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
    offered = frozenset(function_names(body))

    def put(slot: Slot) -> str:
        text = next(source)
        return _function_name(text, offered) if slot.is_name and text != slot.text else text

    result: dict[str, Any] = _walk_body(body, put)
    return result


def _walk_body(body: dict[str, Any], visit: Callable[[Slot], str]) -> Any:
    return {
        _key(key, ("body",), visit, True): _walk(value, (key,), visit, _echoes(key))
        for key, value in body.items()
    }


def _echoes(key: str) -> bool:
    return key in ("messages", "prediction")


def _walk(value: Any, path: Path, visit: Callable[[Slot], str], echo: bool) -> Any:
    if isinstance(value, str):
        return _string(value, path, visit, echo)
    if isinstance(value, dict):
        if path[:1] == ("messages",) and len(path) == 2:
            echo = value.get("role") not in ("system", "developer")
        return {
            _key(key, path, visit, echo): _walk(child, _below(value, path, key), visit, echo)
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [_walk(child, (*path, i), visit, echo) for i, child in enumerate(value)]
    if _digits(value):
        return _number(value, path, visit, echo)
    return value


def _below(value: dict[str, Any], path: Path, key: str) -> Path:
    """Return the path of a child; the name of a message that answers a call is its function's."""
    if key == "name" and path[:1] == ("messages",) and len(path) == 2:
        return (*path, "answer", key) if value.get("role") in ("tool", "function") else (*path, key)
    return (*path, key)


def _string(value: str, path: Path, visit: Callable[[Slot], str], echo: bool) -> Any:
    key = _last_key(path)
    if key == "arguments":
        return _arguments(value, visit, echo)
    if is_bytes_url(value):
        return value
    if key == "filename" and path[-2:-1] == ("file",):
        # Its ending hides a name from detection: "Ilse Varga.pdf" looks like a file, not a person.
        stem, dot, ending = value.rpartition(".")
        if stem and _FILE_ENDING.fullmatch(ending):
            return visit(Slot(stem, echo)) + dot + ending
    if _is_structural(key, path, value):
        if key == "name":
            # A function may be called after somebody: "jira_search", "ask_ilse". It stays a name.
            return visit(Slot(value, echo, detect=False, is_name=True))
        swept = key in _REFERENCES or key in _LIST_OF_NAMES
        return visit(Slot(value, echo, detect=False)) if swept else value
    return visit(Slot(value, echo, label=_label(path)))


def _function_name(text: str, offered: frozenset[str]) -> str:
    """Return a new name as providers allow it; two functions never get one name."""
    if _FUNCTION_NAME.fullmatch(text) and text not in offered:
        return text
    digest = sha256(text.encode()).hexdigest()[:_DIGEST]
    return f"{_NO_LETTER.sub('_', text)[: _LONGEST_NAME - _DIGEST - 1]}_{digest}"


def _label(path: Path) -> str:
    """Return the key of a value among data as words; ``lastName`` is "last name: "."""
    key = _last_key(path)
    if not _LABEL.fullmatch(key) or (path[0] in _ROOTS and _DATA.isdisjoint(path)):
        return ""
    return f"{_HUMP.sub(' ', key).replace('_', ' ').replace('-', ' ').lower()}: "


def _is_structural(key: str, path: Path, value: str) -> bool:
    if len(path) > 1 and (path[0] not in _ROOTS or not _DATA.isdisjoint(path)):
        return False
    if path[0] == "messages" and (path[2:3] + path[4:] in _CALLED or path[2:] in _CALLED_BEFORE):
        return bool(_FUNCTION_NAME.fullmatch(value))
    if path[0] == "messages" and len(path) > _DEEPEST_REFERENCE and key not in ("detail", "format"):
        return False
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
    protocol = path[:1] in (("messages",), ("body",)) and "arguments" not in path
    if protocol and _PLAIN_KEY.fullmatch(key):
        return key
    return visit(Slot(key, echo, detect=not _PLAIN_KEY.fullmatch(key)))


def _digits(value: Any) -> str:
    """Return the digits of a long whole number, also one written as a float; else nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) < _LONG_NUMBER:
        return ""
    return str(int(value)) if value == int(value) else ""


def _number(value: int | float, path: Path, visit: Callable[[Slot], str], echo: bool) -> Any:
    """A long number may be an account: it keeps its type where the surrogate is a number."""
    if path[:1] in (("seed",), ("max_tokens",), ("max_completion_tokens",), ("logit_bias",)):
        return value
    digits = _digits(value)
    text = visit(Slot(digits, echo, label=_label(path)))
    if text == digits:
        return value
    return int(text) if re.fullmatch(r"-?[1-9]\d{0,17}", text) else text


def _arguments(value: str, visit: Callable[[Slot], str], echo: bool) -> str:
    """Tool-call arguments are JSON in a string: walked leaf by leaf, written as JSON again."""
    parsed = _document(value)
    if parsed is None:
        return visit(Slot(value, echo))
    return orjson.dumps(_walk(parsed, ("arguments",), _nested(visit), echo)).decode()


def _nested(visit: Callable[[Slot], str]) -> Callable[[Slot], str]:
    """Look inside JSON that an argument holds as a string."""

    def look(slot: Slot) -> str:
        parsed = _document(slot.text)
        if parsed is None:
            return visit(slot)
        return orjson.dumps(_walk(parsed, ("arguments",), look, slot.echo)).decode()

    return look


def _document(text: str) -> Any:
    """Return the object or list that ``text`` is as JSON, None when it is another thing.

    Raises:
        TooDeep: it is nested deeper than can be walked and written again.
    """
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return None
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if is_too_deep(parsed):
        raise TooDeep
    return parsed


def function_names(body: dict[str, Any]) -> list[str]:
    """Return the names of the functions that a request offers, in order."""
    offered = [
        tool.get("function") or tool.get("custom")
        for tool in body.get("tools") or ()
        if isinstance(tool, dict)
    ]
    offered += older if isinstance(older := body.get("functions"), list) else []
    names = [function.get("name") for function in offered if isinstance(function, dict)]
    return [name for name in names if isinstance(name, str)]


def strings_of(value: Any) -> Iterator[str]:
    """Yield every string, key and number of a JSON value as text: what the guard reads."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
            if node.lstrip(" \t\r\n")[:1] in ("{", "["):
                with contextlib.suppress(orjson.JSONDecodeError):
                    waiting.append(orjson.loads(node))
        elif isinstance(node, dict):
            yield from node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, int) and not isinstance(node, bool):
            yield str(node)
        elif digits := _digits(node):
            yield digits
