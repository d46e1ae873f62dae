"""Chat completions of fine-tuned models: answered here, so nothing is sanitised and nothing leaves."""

import itertools
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from starlette.responses import Response, StreamingResponse

from gateway.deadline import Deadline
from gateway.errors import bad_request
from gateway.json import JsonResponse
from gateway.services import Services
from gateway.tuned import TunedModels
from gateway.work import in_worker_until
from learning.methods.base import Answer

_REFUSED: Final = ("tools", "functions", "stop", "logprobs", "audio")
_TEXTS: Final = frozenset(("text", "input_text", "output_text", "refusal"))


async def answer_tuned(
    services: Services, tuned: TunedModels, tenant_id: str, body: dict[str, Any]
) -> Response:
    """Answer with a tuned model; a classifier's answer is the label, its scores go beside it."""
    whole = await tuned_completion(
        services, tuned, tenant_id, body, Deadline(services.settings.request_timeout)
    )
    if not body.get("stream"):
        return JsonResponse(whole)
    with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    chunks = chunks_of(whole, with_usage=with_usage)
    frames = (b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks)
    return StreamingResponse(
        itertools.chain(frames, (b"data: [DONE]\n\n",)), media_type="text/event-stream"
    )


async def tuned_completion(
    services: Services,
    tuned: TunedModels,
    tenant_id: str,
    body: dict[str, Any],
    deadline: Deadline,
) -> dict[str, Any]:
    """Return the ``chat.completion`` of a tuned model.

    Raises:
        ApiError: 400 for what such a model can not honour, and whatever else the client has to know.
    """
    name = next(_unsupported(body), None)
    if name is not None:
        told = f"{name} is not supported by fine-tuned models."
        raise bad_request(told, name, "unsupported_parameter")
    answer = await in_worker_until(
        deadline, tuned.workers, tuned.answer, tenant_id, body["model"], body
    )
    return _completion(body["model"], answer)


def _unsupported(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a tuned model cannot honour; ignored, it would be missed later."""
    yield from (name for name in _REFUSED if body.get(name))
    if body.get("response_format") not in (None, {"type": "text"}):
        yield "response_format"
    if (body.get("n") or 1) != 1:
        yield "n"
    if (body.get("penname") or {}).get("vector_store_ids"):
        yield "penname.vector_store_ids"
    for number, message in enumerate(body["messages"]):
        parts = message.get("content")
        for place, part in enumerate(parts if isinstance(parts, list) else ()):
            if part["type"] not in _TEXTS:
                yield f"messages[{number}].content[{place}].type"


def _completion(model: str, answer: Answer) -> dict[str, Any]:
    total = answer.prompt_tokens + answer.completion_tokens
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None}
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{**choice, "finish_reason": "length" if answer.is_cut else "stop"}],
        "usage": {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
            "total_tokens": total,
        },
        "penname": {"local": True, "scores": dict(answer.scores)},
    }


def chunks_of(whole: dict[str, Any], *, with_usage: bool) -> Iterator[dict[str, Any]]:
    """Yield a completion as the chunks of a stream."""
    head = {name: whole[name] for name in ("id", "created", "model", "penname")}
    content = whole["choices"][0]["message"]["content"]
    finish = whole["choices"][0]["finish_reason"]
    for delta, reason in (({"role": "assistant", "content": content}, None), ({}, finish)):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        yield {**head, "object": "chat.completion.chunk", "choices": [choice]}
    if with_usage:
        told = {"choices": [], "usage": whole["usage"]}
        yield {**head, "object": "chat.completion.chunk", **told}
