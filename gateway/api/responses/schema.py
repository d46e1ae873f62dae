"""The body of ``POST /v1/responses``: closed-world, since only what is translated can be protected."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from gateway.errors import bad_request
from gateway.request import checked, json_object, known_extension

# OpenAI's names of what can not be honoured here: told by name, never dropped in silence.
UNSUPPORTED: Final = {
    "background": "responses are answered while the client waits",
    "conversation": "continue a response with previous_response_id",
    "prompt": "prompt templates are the provider's; send their text",
    "moderation": "it is the provider's",
    "context_management": "nothing is compacted here",
    "max_tool_calls": "it counts tools that a provider runs",
    "top_logprobs": "log probabilities spell the upstream's tokens",
    "logprobs": "log probabilities spell the upstream's tokens",
    "messages": "this interface calls it input",
    "max_tokens": "this interface calls it max_output_tokens",
    "max_completion_tokens": "this interface calls it max_output_tokens",
    "response_format": "this interface calls it text.format",
    "reasoning_effort": "this interface calls it reasoning.effort",
    **dict.fromkeys(
        "n stop seed frequency_penalty presence_penalty logit_bias prediction functions "
        "function_call modalities audio web_search_options".split(),
        "it is a field of chat completions only",
    ),
}
_INCLUDABLE: Final = frozenset(
    "file_search_call.results web_search_call.results web_search_call.action.sources "
    "message.input_image.image_url computer_call_output.output.image_url "
    "code_interpreter_call.outputs reasoning.encrypted_content".split()
)
RESULTS: Final = "file_search_call.results"
# Any other name would be read as text, and one that came out changed would name no function.
_NAME: Final = r"^[A-Za-z0-9_-]{1,64}$"
_CHOICES: Final = frozenset(("auto", "none", "required"))
_MOST_PAIRS, _LONGEST_KEY, _LONGEST_VALUE = 16, 64, 512


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class TextFormat(_Closed):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = Field(None, pattern=_NAME)
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None
    description: str | None = None


class TextConfig(_Closed):
    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Reasoning(_Closed):
    effort: str | None = Field(None, pattern=r"^[a-z]{1,16}$")


class StreamOptions(_Closed):
    include_obfuscation: Literal[False] | None = None


class FunctionTool(_Closed):
    type: Literal["function"]
    name: str = Field(pattern=_NAME)
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class FileSearchTool(_Closed):
    type: Literal["file_search"]
    vector_store_ids: list[str] = Field(min_length=1)
    max_num_results: int | None = Field(None, ge=1, le=50)
    # Not what retrieval inside a request can do.
    filters: None = None
    ranking_options: None = None


class NamedChoice(_Closed):
    type: Literal["function"]
    name: str = Field(min_length=1, max_length=64)


Tool = FunctionTool | FileSearchTool
_TOOLS: Final[dict[str, type[Tool]]] = {"function": FunctionTool, "file_search": FileSearchTool}


class ResponsesRequest(_Closed):
    """The fields; ``tools`` and ``tool_choice`` are as the client wrote them, and checked."""

    model: str = Field(min_length=1, max_length=256)
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    max_output_tokens: int | None = Field(None, ge=1)
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    service_tier: str | None = Field(None, pattern=r"^[a-z]{1,16}$")
    store: bool | None = None
    previous_response_id: str | None = Field(None, min_length=1, max_length=128)
    truncation: Literal["disabled"] | None = None
    include: list[str] | None = None
    penname: dict[str, Any] | None = None

    _known_extension = field_validator("penname")(known_extension)

    @field_validator("metadata")
    @classmethod
    def _pairs(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        pairs = (value or {}).items()
        fits = all(
            isinstance(v, str) and len(k) <= _LONGEST_KEY and len(v) <= _LONGEST_VALUE
            for k, v in pairs
        )
        if len(pairs) > _MOST_PAIRS or not fits:
            raise ValueError(
                f"takes up to {_MOST_PAIRS} pairs of texts, names up to {_LONGEST_KEY} and values up to "
                f"{_LONGEST_VALUE} characters long"
            )
        return value

    @property
    def stored(self) -> bool:
        return self.store is not False

    @property
    def functions(self) -> list[dict[str, Any]]:
        """The tools that the client runs."""
        return [tool for tool in self.tools or () if tool["type"] == "function"]

    @property
    def searches(self) -> list[dict[str, Any]]:
        """The tools that search vector stores."""
        return [tool for tool in self.tools or () if tool["type"] == "file_search"]


def parse_responses(raw: bytes) -> ResponsesRequest:
    """Parse and check a body; items of ``input`` are read in `gateway.api.responses.items`.

    Raises:
        ApiError: 400 naming the field and what is wrong with it, never its value.
    """
    body = json_object(raw)
    for name, why in UNSUPPORTED.items():
        if body.pop(name, None):
            raise bad_request(
                f"{name} is not supported here: {why}.", name, "unsupported_parameter"
            )
    reasoning = body.get("reasoning")
    for name in ("summary", "generate_summary", "context", "mode"):
        if isinstance(reasoning, dict) and reasoning.pop(name, None):
            field = f"reasoning.{name}"
            raise bad_request(
                f"{field} is not supported here: only reasoning.effort is passed on.",
                field,
                "unsupported_parameter",
            )
    request = checked(ResponsesRequest, body)
    _check_tools(request)
    _check_format(request)
    check_include(request.include or ())
    return request


def _check_tools(request: ResponsesRequest) -> None:
    for index, tool in enumerate(request.tools or ()):
        kind = tool.get("type")
        model = _TOOLS.get(kind) if isinstance(kind, str) else None
        if model is None:
            raise bad_request(
                f"tools[{index}].type: 'function' and 'file_search' are served; a tool that a provider "
                "runs would send originals elsewhere.",
                f"tools[{index}].type",
                "unsupported_tool",
            )
        given = {name: value for name, value in tool.items() if value is not None}
        checked(model, given, f"tools[{index}]")
    choice = request.tool_choice
    if isinstance(choice, dict) and choice == {"type": "file_search"} and request.searches:
        return
    if isinstance(choice, dict):
        named = checked(NamedChoice, choice, "tool_choice")
        if named.name not in [tool["name"] for tool in request.functions]:
            raise bad_request("tool_choice names a function that is not in tools.", "tool_choice")
    elif choice is not None and choice not in _CHOICES:
        raise bad_request("tool_choice: auto, none, required or a function.", "tool_choice")


def _check_format(request: ResponsesRequest) -> None:
    wanted = request.text.format if request.text else None
    if wanted is None or wanted.type != "json_schema":
        return
    for field, value in (("name", wanted.name), ("schema", wanted.schema_)):
        if value is None:
            raise bad_request(f"text.format.{field}: Field required", f"text.format.{field}")


def check_include(include: object) -> frozenset[str]:
    """Return what is to be included.  Raises ApiError 400 for what is not known here."""
    wanted = frozenset(include) if isinstance(include, list | tuple) else frozenset()
    if not wanted <= _INCLUDABLE:
        raise bad_request(
            f"include: only {', '.join(sorted(_INCLUDABLE))} can be asked for.", "include"
        )
    return wanted
