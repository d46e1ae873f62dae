"""Any server with OpenAI's chat completions, spoken to over HTTP directly."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import orjson
from httpx_sse import EventSource, SSEError

from connectors.base import UpstreamError

_DEFAULT_BASE = "https://api.openai.com/v1"


class OpenAICompatible:
    """Sends the guarded bytes as they are.

    Args:
        client: Shared HTTP client.
        api_base: Base URL ending in the version, such as ``https://host/v1``.
        api_key: Bearer key of the provider, empty for none.
    """

    sees_text = True

    def __init__(self, client: httpx.AsyncClient, api_base: str = "", api_key: str = "") -> None:
        self._client = client
        self._url = f"{(api_base or _DEFAULT_BASE).rstrip('/')}/chat/completions"
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"

    async def complete(self, payload: bytes) -> dict[str, Any]:
        with translated():
            response = await self._client.post(self._url, content=payload, headers=self._headers)
            check(response)
            return json_object(response.content)

    async def stream(self, payload: bytes) -> AsyncGenerator[dict[str, Any], None]:
        headers = {**self._headers, "accept": "text/event-stream"}
        with translated():
            async with self._client.stream(
                "POST", self._url, content=payload, headers=headers
            ) as response:
                check(response)
                async for event in EventSource(response).aiter_sse():
                    if event.data.startswith("[DONE]"):
                        return
                    if event.data:
                        yield json_object(event.data)
                # A provider that stops without [DONE] has cut the answer off.
                raise UpstreamError("malformed")

    async def close(self) -> None:
        """The client is shared: its owner closes it."""


def check(response: httpx.Response) -> None:
    """Raise UpstreamError for any status but 2xx; the body is not read."""
    status = response.status_code
    if 200 <= status < 300:
        return
    if status == 429:
        raise UpstreamError("rate_limited", status, response.headers.get("retry-after"))
    if 400 <= status < 500:
        raise UpstreamError("rejected", status)
    raise UpstreamError("failed", status, response.headers.get("retry-after"))


def json_object(raw: bytes | str) -> dict[str, Any]:
    """Return a JSON object.  Raises UpstreamError when it is none, or carries an error."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise UpstreamError("malformed") from None
    if not isinstance(value, dict):
        raise UpstreamError("malformed")
    if value.get("error"):
        raise UpstreamError("failed")
    return value


@contextmanager
def translated() -> Iterator[None]:
    """Turn the client's errors into ours, their texts left behind."""
    try:
        yield
    except httpx.TimeoutException:
        raise UpstreamError("timeout") from None
    except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise UpstreamError("unreachable") from None
    except SSEError:
        raise UpstreamError("malformed") from None
    except httpx.HTTPError:
        raise UpstreamError("failed") from None
