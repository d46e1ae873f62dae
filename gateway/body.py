"""Reading a request's body within its limit."""

from fastapi import Request
from starlette.requests import ClientDisconnect

from gateway.errors import ApiError, too_large


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body.

    Raises:
        ApiError: 413 above ``limit`` bytes, 400 when the client went away in the middle.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _over(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _over(limit)
            parts.append(part)
    except ClientDisconnect:
        raise ApiError(400, "The request ended before its body was complete.") from None
    return b"".join(parts)


def _over(limit: int) -> ApiError:
    return too_large(
        f"The body is larger than {limit} bytes; send less, or raise PENNAME_MAX_BODY_BYTES."
    )
