"""Every other provider, through litellm; the only file that imports it, and only when used."""

import asyncio
import os
from collections.abc import AsyncGenerator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson

from connectors.base import UpstreamError

# Two were published by thieves of credentials, the others break.
_BAD_VERSIONS = ("1.82.7", "1.82.8", "1.107.")
_INSTALL = "install it with: pip install -c constraints.txt -e '.[litellm]'"


class LiteLlm:
    """One model of one provider.

    Args:
        params: LiteLLM's ``litellm_params``: ``model``, ``api_base``, ``api_key`` and others.
        timeout: Seconds for a whole request.
    """

    sees_text = True

    def __init__(self, params: dict[str, Any], timeout: float) -> None:
        self._params = params
        self._timeout = timeout

    async def complete(self, payload: bytes) -> dict[str, Any]:
        return _plain(await self._call(payload, stream=False))

    async def stream(self, payload: bytes) -> AsyncGenerator[dict[str, Any], None]:
        chunks = await self._call(payload, stream=True)
        try:
            async for chunk in chunks:
                yield _plain(chunk)
        except Exception as error:  # litellm raises whatever its provider's client raises
            raise _translate(error) from None

    async def close(self) -> None:
        """litellm keeps no connection of ours."""

    async def _call(self, payload: bytes, *, stream: bool) -> Any:
        # The import alone takes seconds of CPU.
        litellm = await asyncio.to_thread(load_litellm)
        body = {k: v for k, v in orjson.loads(payload).items() if k not in ("model", "stream")}
        try:
            return await litellm.acompletion(
                **body,
                **self._params,
                stream=stream,
                timeout=self._timeout,
                num_retries=0,
                max_retries=0,
            )
        except Exception as error:
            raise _translate(error) from None


def check_litellm() -> None:
    """Make sure that a usable litellm is installed, without importing it.

    Raises:
        ModuleNotFoundError: there is none, or one of the versions that must not be used.
    """
    try:
        found = version("litellm")
    except PackageNotFoundError:
        raise ModuleNotFoundError(f"this provider needs litellm; {_INSTALL}") from None
    if found.startswith(_BAD_VERSIONS):
        raise ModuleNotFoundError(f"litellm {found} must not be used; {_INSTALL}")


def load_litellm() -> Any:
    """Import litellm with everything off that calls home or writes prompts to a log."""
    check_litellm()
    # At import it would otherwise fetch a price list from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm  # noqa: TID251 - this is the one adapter that may

    litellm.telemetry = False
    litellm.drop_params = False
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    return litellm


def _plain(value: Any) -> dict[str, Any]:
    data = value.model_dump(exclude_none=False)
    if not isinstance(data, dict):
        raise UpstreamError("malformed")
    return data


def _translate(error: Exception) -> UpstreamError:
    if isinstance(error, UpstreamError):
        return error
    status = getattr(error, "status_code", None)
    name = type(error).__name__
    if "Timeout" in name:
        return UpstreamError("timeout")
    if "Connection" in name:
        return UpstreamError("unreachable")
    if status == 429:
        return UpstreamError("rate_limited", 429)
    if isinstance(status, int) and 400 <= status < 500:
        return UpstreamError("rejected", status)
    return UpstreamError("failed", status if isinstance(status, int) else None)
