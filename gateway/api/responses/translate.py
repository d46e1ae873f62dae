"""A Responses request as a request for chat completions, for which there is one privacy path."""

from collections.abc import Sequence
from typing import Any, Final

from gateway.api.responses.items import Item
from gateway.api.responses.schema import ResponsesRequest

_SAME: Final = (
    "temperature top_p user safety_identifier prompt_cache_key prompt_cache_retention service_tier"
).split()


def chat_body(
    request: ResponsesRequest, items: Sequence[Item], session: str | None
) -> dict[str, Any]:
    """Return the body of the equivalent chat request.

    Args:
        items: The whole conversation: earlier turns, then this one's input, as `read_input` gives them.
        session: The session to continue, None for the one that the client or its messages name.
    """
    body: dict[str, Any] = {
        "model": request.model,
        "messages": messages_of(request.instructions, items),
    }
    for name in _SAME:
        if getattr(request, name) is not None:
            body[name] = getattr(request, name)
    if request.max_output_tokens is not None:
        body["max_completion_tokens"] = request.max_output_tokens
    if request.reasoning is not None and request.reasoning.effort:
        body["reasoning_effort"] = request.reasoning.effort
    if request.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return {**body, **_tools(request), **_text(request), **_own(request, session)}


def messages_of(instructions: str | None, items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return the messages of a conversation; calls and the assistant's message beside them are one."""
    messages: list[dict[str, Any]] = []
    if instructions is not None:
        messages.append({"role": "system", "content": instructions})
    for item in items:
        if item["type"] == "message":
            message = _message(item)
            if message["role"] == "assistant" and messages and "tool_calls" in messages[-1]:
                # Between calls and their outputs nothing may stand.
                message["content"] = (messages[-1]["content"] or "") + message["content"]
                messages[-1] |= message
            else:
                messages.append(message)
        elif item["type"] == "function_call":
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(_call(item))
        elif item["type"] == "function_call_output":
            content = item["output"]
            if not isinstance(content, str):
                content = [_part(part) for part in content]
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})
    return messages


def _message(item: Item) -> dict[str, Any]:
    role, content = item["role"], item["content"]
    if role == "assistant":
        said = "".join(part.get("text", "") for part in content)
        refused = "".join(part.get("refusal", "") for part in content)
        return {"role": role, "content": said, **({"refusal": refused} if refused else {})}
    if len(content) == 1 and content[0]["type"] == "input_text":
        return {"role": role, "content": content[0]["text"]}
    return {"role": role, "content": [_part(part) for part in content]}


def _part(part: Item) -> dict[str, Any]:
    if part["type"] == "input_image":
        image = {"url": part["image_url"], "detail": part["detail"]}
        return {"type": "image_url", "image_url": image}
    if part["type"] == "input_file":
        file = {k: part[k] for k in ("file_data", "filename") if k in part}
        return {"type": "file", "file": file}
    return {"type": "text", "text": part["text"]}


def _call(item: Item) -> dict[str, Any]:
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _tools(request: ResponsesRequest) -> dict[str, Any]:
    """Functions only: vector stores are searched here, before anything leaves."""
    if not request.functions:
        return {}
    out: dict[str, Any] = {
        "tools": [
            {
                "type": "function",
                "function": {k: v for k, v in tool.items() if k != "type" and v is not None},
            }
            for tool in request.functions
        ]
    }
    choice = request.tool_choice
    if isinstance(choice, str):
        out["tool_choice"] = choice
    elif choice is not None and choice["type"] == "function":
        out["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
    if request.parallel_tool_calls is not None:
        out["parallel_tool_calls"] = request.parallel_tool_calls
    return out


def _text(request: ResponsesRequest) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if request.text is None:
        return out
    if request.text.verbosity:
        out["verbosity"] = request.text.verbosity
    wanted = request.text.format
    if wanted is not None and wanted.type == "json_schema":
        schema = wanted.model_dump(by_alias=True, exclude_none=True, exclude={"type"})
        out["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif wanted is not None and wanted.type == "json_object":
        out["response_format"] = {"type": "json_object"}
    return out


def _own(request: ResponsesRequest, session: str | None) -> dict[str, Any]:
    """The gateway's own fields, which never leave; of the metadata they are all that is passed."""
    own = dict(request.penname or {})
    if request.searches:
        ids = [i for tool in request.searches for i in tool["vector_store_ids"]]
        named = own.get("vector_store_ids", [])
        if isinstance(named, list):  # else the retriever tells what is wrong
            own["vector_store_ids"] = [*named, *(i for i in dict.fromkeys(ids) if i not in named)]
        limits = [t["max_num_results"] for t in request.searches if t.get("max_num_results")]
        asked = own.get("max_num_results", max(limits, default=None))
        if limits and isinstance(asked, int):  # else the retriever tells what is wrong
            own["max_num_results"] = min(asked, *limits)
    if session is not None:
        own["session"] = session
    out: dict[str, Any] = {"penname": own} if own else {}
    marker = (request.metadata or {}).get("penname_session")
    if marker is not None:
        out["metadata"] = {"penname_session": marker}
    return out
