"""Reading a JSON body into a request model."""

from typing import Any, TypeVar

import orjson
from fastapi import Request
from pydantic import BaseModel, ValidationError

from gateway.body import read_body
from gateway.errors import ApiError, bad_request, fault_text

M = TypeVar("M", bound=BaseModel)


async def read_model(request: Request, model: type[M], limit: int) -> M:
    """Return the body as ``model``; an absent body counts as an empty object.

    Raises:
        ApiError: 400 naming the field and what is wrong with it, never its value; 413 above
            ``limit`` bytes.
    """
    raw = await read_body(request, limit)
    try:
        content = orjson.loads(raw) if raw.strip() else {}
    except orjson.JSONDecodeError:
        raise bad_request("The body is not valid JSON.") from None
    if not isinstance(content, dict):
        raise bad_request("The body must be a JSON object.")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise _explained(error.errors(include_input=False, include_url=False), model) from None
    except RecursionError:
        raise bad_request("The body is nested too deeply.") from None


def _explained(errors: list[Any], model: type[BaseModel]) -> ApiError:
    first = errors[0]
    # Only names that the schema knows are repeated: a key of metadata may name somebody.
    name = str(first["loc"][0]) if first["loc"] else None
    if name is not None and name not in model.model_fields:
        return bad_request("The body has a field that is not known here.", code="unknown_parameter")
    return bad_request(f"{name or 'body'}: {fault_text(first)}", name)
