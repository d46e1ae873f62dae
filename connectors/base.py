"""What every upstream is to the gateway: bytes of a sanitised request in, OpenAI objects out."""

from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol

ErrorKind = Literal["unreachable", "timeout", "rejected", "rate_limited", "failed", "malformed"]


class UpstreamError(Exception):
    """An upstream did not answer as asked.

    The provider's own words are not kept: they may quote the prompt, and they would name
    substitutes that mean nothing to the reader.

    Attributes:
        kind: What went wrong.
        status: HTTP status of the upstream, None when there was none.
        retry_after: Seconds the upstream asked to wait, as it wrote them.
        reason: A sentence of this side's own, where nothing was sent or it is known what to do.
    """

    def __init__(
        self,
        kind: ErrorKind,
        status: int | None = None,
        retry_after: str | None = None,
        reason: str | None = None,
    ) -> None:
        told = kind if status is None else f"{kind} (HTTP {status})"
        super().__init__(told if reason is None else f"{told}: {reason}")
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.reason = reason


class Upstream(Protocol):
    """A chat model somewhere.  ``payload`` is the serialised body that the guard has passed.

    Attributes:
        sees_text: False when nothing but noised embeddings leaves this process: such an upstream is
            to be given the original text, and its cost goes to the account ``ppft``.
    """

    sees_text: bool

    async def complete(self, payload: bytes) -> dict[str, Any]:
        """Return the ``chat.completion`` object.  Raises UpstreamError."""

    def stream(self, payload: bytes) -> AsyncGenerator[dict[str, Any], None]:
        """Yield ``chat.completion.chunk`` objects.  Raises UpstreamError."""

    async def close(self) -> None:
        """Release connections and models."""
