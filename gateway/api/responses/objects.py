"""The response object, and pages of input items."""

from collections.abc import Sequence
from typing import Any, Final

from gateway.api.responses.output import Output
from gateway.api.responses.schema import RESULTS, ResponsesRequest

_MOST_TOKENS: Final = 2**52
_ECHOED: Final = (
    "instructions max_output_tokens previous_response_id temperature top_p user safety_identifier "
    "prompt_cache_key service_tier"
).split()


def opened(
    request: ResponsesRequest, response_id: str, created_at: float, model: str
) -> dict[str, Any]:
    """Return the object of a response that is under way."""
    choice = request.tool_choice if request.tool_choice is not None else "auto"
    text = request.text.model_dump(by_alias=True, exclude_none=True) if request.text else {}
    effort = request.reasoning.effort if request.reasoning else None
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(created_at),
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "reasoning": {"effort": effort, "summary": None},
        "store": request.stored,
        "text": {"format": {"type": "text"}, **text},
        "tool_choice": choice,
        "tools": request.tools or [],
        "metadata": request.metadata or {},
        "truncation": "disabled",
        "usage": None,
        **{name: getattr(request, name) for name in _ECHOED},
    }


def finished(response: dict[str, Any], output: Output, completed_at: float) -> dict[str, Any]:
    """Return the object of a response that is answered, whole or cut short."""
    reason = output.incomplete_reason
    own = {"penname": output.extension} if output.extension else {}
    return {
        **response,
        "status": "incomplete" if reason else "completed",
        "completed_at": None if reason else int(completed_at),
        "incomplete_details": {"reason": reason} if reason else None,
        "model": output.model or response["model"],
        "output": output.items(),
        "usage": _usage(output.usage),
        **own,
    }


def failed(response: dict[str, Any], output: Output, code: str, message: str) -> dict[str, Any]:
    """Return the object of a response that broke off; what was said stays in it."""
    return {
        **response,
        "status": "failed",
        "error": {"code": code, "message": message},
        "output": output.items("incomplete"),
    }


def shown(response: dict[str, Any], include: frozenset[str]) -> dict[str, Any]:
    """Return a response for the client: results of searches only where they were asked for."""
    if RESULTS in include:
        return response
    output = [
        {**item, "results": None} if item["type"] == "file_search_call" else item
        for item in response["output"]
    ]
    return {**response, "output": output}


def page(items: Sequence[dict[str, Any]], limit: int) -> dict[str, Any]:
    """Return the first ``limit`` items as a page."""
    data = list(items[:limit])
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": len(items) > limit,
    }


def _usage(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, dict):
        return None
    taken, given = _number(usage, "prompt_tokens"), _number(usage, "completion_tokens")
    return {
        "input_tokens": taken,
        "input_tokens_details": {
            "cached_tokens": _number(usage.get("prompt_tokens_details"), "cached_tokens"),
            "cache_write_tokens": 0,
        },
        "output_tokens": given,
        "output_tokens_details": {
            "reasoning_tokens": _number(usage.get("completion_tokens_details"), "reasoning_tokens")
        },
        "total_tokens": _number(usage, "total_tokens") or taken + given,
    }


def _number(values: Any, name: str) -> int:
    value = values.get(name) if isinstance(values, dict) else None
    # What an upstream counts is its word: beyond this neither JSON clients nor orjson carry a sum of it.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
        return value
    return 0
