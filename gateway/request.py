"""Reading a chat request: its shape is checked here, its texts are read in `gateway.carriers`."""

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from gateway.errors import bad_request, blocked, fault_text
from gateway.json import MAX_DEPTH, is_too_deep
from policies.model import Policy

_MEDIA = frozenset(("image_url", "input_audio", "file", "input_image", "input_file", "video_url"))
_PERSONAL = ("user", "safety_identifier", "prompt_cache_key")
_HASH_LENGTH = 32
EXTENSION = frozenset(("session", "vector_store_ids", "max_num_results"))
TOO_DEEP = f"The body is nested more than {MAX_DEPTH} levels deep."


Checked = TypeVar("Checked", bound=BaseModel)


def known_extension(value: dict[str, Any] | None) -> dict[str, Any] | None:
    """Validate the field ``penname``: a misspelt name would leave the context out in silence."""
    if set(value or ()) - EXTENSION:
        raise ValueError(f"has an unknown field; it takes {', '.join(sorted(EXTENSION))}")
    return value


class ToolFunction(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str
    arguments: str = ""


class ToolCall(BaseModel):
    model_config = ConfigDict(extra="allow")

    function: ToolFunction | None = None


class Part(BaseModel):
    model_config = ConfigDict(extra="allow")

    type: str = Field(min_length=1, max_length=64)
    text: str | None = None


class Message(BaseModel):
    model_config = ConfigDict(extra="allow")

    role: str = Field(max_length=64, pattern=r"^[a-z][a-z0-9_-]*$")
    content: str | list[Part] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="allow")


class ChatRequest(BaseModel):
    """The fields that the gateway itself depends on; every other field is scanned and passed."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str = Field(min_length=1, max_length=256)
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1, le=128)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    seed: int | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    metadata: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    penname: dict[str, Any] | None = None

    _known_extension = field_validator("penname")(known_extension)


def parse_chat(raw: bytes) -> dict[str, Any]:
    """Parse and check the body of a chat request.

    Raises:
        ApiError: 400 naming the field and what is wrong with it, never its value.
    """
    body = json_object(raw)
    checked(ChatRequest, body)
    return body


def json_object(raw: bytes) -> dict[str, Any]:
    """Parse a body.  Raises ApiError 400 when it is no JSON object, or nested too deep."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise bad_request(
            f"The body is not valid JSON in UTF-8 (line {error.lineno}, column {error.colno}).",
            code="invalid_json",
        ) from None
    if not isinstance(body, dict):
        raise bad_request("The body must be a JSON object.", code="invalid_json")
    if is_too_deep(body):
        raise bad_request(TOO_DEEP, code="invalid_json")
    return body


def checked(model: type[Checked], value: Any, where: str = "") -> Checked:
    """Return ``value`` as a model.

    Args:
        where: The field that ``value`` is, when it is not the whole body.

    Raises:
        ApiError: 400 naming the field and what is wrong with it, never its value.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        unknown = fault["type"] == "extra_forbidden"
        # The name of an unknown field is the client's own text.
        field = _field(fault["loc"][:-1] if unknown else fault["loc"], where)
        what = "has a field that is not known here" if unknown else fault_text(fault)
        raise bad_request(f"{field}: {what}", field) from None


def _field(location: tuple[int | str, ...], where: str) -> str:
    out = where
    for part in location:
        if isinstance(part, int):
            out += f"[{part}]"
        elif part != "str" and "[" not in part:  # else pydantic's name for one side of a union
            out += f".{part}" if out else part
    return out or "body"


def strip_extensions(
    body: dict[str, Any],
    upstream_name: str,
    policy: Policy,
    keyed_hash: Callable[[str, str], str],
) -> dict[str, Any]:
    """Return a copy for the upstream: our own fields gone, fields that name a person hashed.

    Raises:
        ApiError: 403 for content that the policy does not let pass unseen.
    """
    out = {key: value for key, value in body.items() if key != "penname"}
    out["model"] = upstream_name
    _drop_metadata(out)
    for field in _PERSONAL:
        if out.get(field):
            out[field] = f"pn-{keyed_hash(field, out[field])[:_HASH_LENGTH]}"
    if out.get("store"):
        out["store"] = False
    if policy.logprobs == "block" and out.get("logprobs"):
        raise blocked(
            "The policy does not allow 'logprobs': they spell out the answer.", "logprobs"
        )
    out.pop("logprobs", None)
    out.pop("top_logprobs", None)
    out["messages"] = [_message(m, i, policy, keyed_hash) for i, m in enumerate(out["messages"])]
    return out


def _drop_metadata(out: dict[str, Any]) -> None:
    metadata = out.get("metadata")
    if isinstance(metadata, dict) and "penname_session" in metadata:
        rest = {key: value for key, value in metadata.items() if key != "penname_session"}
        out.pop("metadata")
        if rest:
            out["metadata"] = rest


def _message(
    message: dict[str, Any], index: int, policy: Policy, keyed_hash: Callable[[str, str], str]
) -> dict[str, Any]:
    content = message.get("content")
    if policy.images == "block" and isinstance(content, list):
        for part in content:
            if part.get("type") in _MEDIA:
                raise blocked(
                    f"messages[{index}]: the policy does not let pictures, audio or files pass, since "
                    "nothing can look into them; send their text, or set 'images: allow'.",
                    "media_not_allowed",
                )
    name = message.get("name")
    if name and message["role"] not in ("tool", "function"):
        return {**message, "name": f"participant_{keyed_hash('name', name)[:8]}"}
    return message
