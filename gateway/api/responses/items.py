"""Items of a response's input: read, checked and brought into one form, which is what is stored."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.errors import bad_request
from gateway.request import checked
from store.models import new_id

Item = dict[str, Any]


class _Open(BaseModel):
    """Further fields are left here: clients send back what answers carried."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Text(_Open):
    text: str


class _Refusal(_Open):
    refusal: str


class _Image(_Open):
    image_url: str = Field(min_length=1)
    detail: Literal["auto", "low", "high", "original"] | None = None


class _File(_Open):
    file_data: str = Field(min_length=1)
    filename: str | None = None


class _Message(_Open):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[dict[str, Any]]


class _Call(_Open):
    call_id: str = Field(min_length=1, max_length=128)
    name: str = Field(min_length=1, max_length=128)
    arguments: str


class _Output(_Open):
    call_id: str = Field(min_length=1, max_length=128)
    output: str | list[dict[str, Any]]


_PARTS: Final[dict[str, type[_Open]]] = {
    "input_text": _Text,
    "output_text": _Text,
    "refusal": _Refusal,
    "input_image": _Image,
    "input_file": _File,
}
_SPOKEN: Final = ("output_text", "refusal")
_GIVEN: Final = ("input_text", "input_image", "input_file")
# What a provider thought or what was found: the model here is given neither.
_IGNORED: Final = frozenset(("reasoning", "file_search_call"))


def read_input(value: str | list[Item]) -> list[Item]:
    """Return the items of ``input``, each with an id.

    Raises:
        ApiError: 400 naming the item and what is wrong with it.
    """
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    items = [_read(item, f"input[{i}]") for i, item in enumerate(value)]
    found = [item for item in items if item is not None]
    if not found:
        raise bad_request("input: has no item that a model can be given.", "input")
    return found


def check_calls(items: Sequence[Item]) -> None:
    """Check that calls and their outputs are paired.  Raises ApiError 400."""
    called = [item["call_id"] for item in items if item["type"] == "function_call"]
    answered = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    if sorted(called) != sorted(answered):
        raise bad_request(
            "input: every function_call needs its function_call_output, and every output its call.",
            "input",
        )


def _read(item: Item, where: str) -> Item | None:
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        return _message(checked(_Message, item, where), where)
    if kind == "function_call":
        call = checked(_Call, item, where)
        return {"id": new_id("fc_"), "type": kind, "status": "completed", **call.model_dump()}
    if kind == "function_call_output":
        output = checked(_Output, item, where)
        read: Any = output.output
        if not isinstance(read, str):
            read = _parts(read, _GIVEN, f"{where}.output")
        head = {"id": new_id("fco_"), "type": kind, "status": "completed"}
        return {**head, "call_id": output.call_id, "output": read}
    if isinstance(kind, str) and kind in _IGNORED:
        return None
    raise bad_request(
        f"{where}.type: message, function_call, function_call_output (reasoning and file_search_call "
        "are left out) are served here; send other items as text.",
        f"{where}.type",
        "unsupported_item",
    )


def _message(message: _Message, where: str) -> Item:
    kinds = _SPOKEN if message.role == "assistant" else _GIVEN
    content = message.content
    if isinstance(content, str):
        content = [{"type": kinds[0], "text": content}]
    return {
        "id": new_id("msg_"),
        "type": "message",
        "status": "completed",
        "role": message.role,
        "content": _parts(content, kinds, f"{where}.content"),
    }


def _parts(parts: list[Item], kinds: tuple[str, ...], where: str) -> list[Item]:
    return [_part(part, kinds, f"{where}[{i}]") for i, part in enumerate(parts)]


def _part(part: Item, kinds: tuple[str, ...], where: str) -> Item:
    kind = part.get("type")
    if kind not in kinds:
        raise bad_request(f"{where}.type: {', '.join(kinds)} can stand here.", f"{where}.type")
    for name in ("file_id", "file_url"):
        if part.get(name):
            raise bad_request(
                f"{where}.{name} is not supported here: a provider has no access to it; send the "
                "content itself.",
                f"{where}.{name}",
                "unsupported_parameter",
            )
    read = {"type": kind, **checked(_PARTS[kind], part, where).model_dump(exclude_none=True)}
    if kind == "output_text":
        read["annotations"] = []
    if kind == "input_image":
        read.setdefault("detail", "auto")
    return read
