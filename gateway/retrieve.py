"""Retrieval inside the trust boundary: the question is searched over originals, locally."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.api.vector_stores.schema import is_expired
from gateway.errors import ApiError, bad_request, not_found
from gateway.services import Services
from policies.model import Retrieval
from privacy.types import Span
from store.errors import NotFound

_TOUCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ContextChunk:
    """A retrieved chunk, with the entity spans found at ingestion."""

    file_id: str
    filename: str = field(repr=False)
    text: str = field(repr=False)
    spans: tuple[Span, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Question:
    """The last user message of a request and the context found for it."""

    message: int
    chunks: tuple[ContextChunk, ...] = field(repr=False)
    template: str

    def insert(self, body: dict[str, Any], texts: Sequence[str]) -> str:
        """Put the sanitised context around the sanitised question, in place; return the result."""
        message = dict(body["messages"][self.message])
        content = message["content"]
        if isinstance(content, str):
            filled = message["content"] = self._filled(texts, content)
        else:
            parts = [dict(part) for part in content]
            last = max(i for i, part in enumerate(parts) if _is_text(part))
            filled = parts[last]["text"] = self._filled(texts, parts[last]["text"])
            message["content"] = parts
        body["messages"][self.message] = message
        return filled

    def _filled(self, texts: Sequence[str], question: str) -> str:
        # Not str.format: braces in context or question are text.
        before, _, rest = self.template.partition("{context}")
        if "{question}" in before:
            head, _, middle = before.partition("{question}")
            return f"{head}{question}{middle}{_joined(texts)}{rest}"
        middle, _, tail = rest.partition("{question}")
        return f"{before}{_joined(texts)}{middle}{question}{tail}"


def _joined(texts: Sequence[str]) -> str:
    return "\n\n".join(text.strip() for text in texts)


class Retriever:
    """Finds the context of a request."""

    def __init__(self, services: Services, settings: Retrieval) -> None:
        self._services = services
        self._settings = settings

    def ask(self, tenant_id: str, body: dict[str, Any]) -> Question | None:
        """Return the question with its context, None when nothing is to be added.

        Raises:
            ApiError: 400 for malformed ids, 404 for a vector store the tenant does not have.
        """
        stores = self._stores(body)
        if not stores:
            return None
        index, text = last_question(body)
        if index is None or not text.strip():
            return None
        vector = self._services.encoder.encode([text])[0]
        try:
            for store in stores:
                self._check_live(tenant_id, store)
            found = self._services.vectors.search(tenant_id, stores, vector, self._most(body))
            chunks = self._services.documents.chunks(tenant_id, [id for id, _ in found])
        except NotFound:
            raise _no_store(body) from None
        kept = self._kept(found, {chunk.id: chunk for chunk in chunks})
        return Question(index, kept, self._settings.template) if kept else None

    def _most(self, body: dict[str, Any]) -> int:
        """Return how many chunks may be added: a client can ask for fewer than the policy allows."""
        asked = (body.get("penname") or {}).get("max_num_results", self._settings.top_k)
        if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
            raise bad_request(
                "penname.max_num_results must be a whole number from 1.", "penname.max_num_results"
            )
        return min(asked, self._settings.top_k)

    def _check_live(self, tenant_id: str, vector_store_id: str) -> None:
        """Refuse a store that has expired; its last use counts, so note it about once a minute."""
        row = self._services.documents.get(tenant_id, vector_store_id)
        if is_expired(row):
            raise bad_request(
                "A vector store of this request has expired.", "penname.vector_store_ids", "expired"
            )
        if time.time() - row.last_active_at > _TOUCH_SECONDS:
            self._services.documents.touch(tenant_id, vector_store_id)

    def _kept(
        self, found: Sequence[tuple[int, float]], by_id: dict[int, Any]
    ) -> tuple[ContextChunk, ...]:
        kept: list[ContextChunk] = []
        room = self._settings.max_characters
        for chunk_id, score in found:
            chunk = by_id.get(chunk_id)
            if chunk is None or score < self._settings.min_score or len(chunk.text) > room:
                continue
            room -= len(chunk.text)
            kept.append(ContextChunk(chunk.file_id, chunk.filename, chunk.text, chunk.spans, score))
        return tuple(kept)

    def _stores(self, body: dict[str, Any]) -> list[str]:
        extension = body.get("penname") or {}
        ids = extension.get("vector_store_ids", list(self._settings.vector_stores))
        if not isinstance(ids, list) or not all(isinstance(i, str) for i in ids):
            raise bad_request(
                "penname.vector_store_ids must be a list of vector store ids.",
                "penname.vector_store_ids",
            )
        return ids


def _no_store(body: dict[str, Any]) -> ApiError:
    if "vector_store_ids" in (body.get("penname") or {}):
        return not_found(
            "A vector store of this request does not exist.", param="penname.vector_store_ids"
        )
    return not_found(
        "A vector store that the gateway's configuration or policy names (retrieval.vector_stores) does "
        "not exist for this key's tenant."
    )


def last_question(body: dict[str, Any]) -> tuple[int | None, str]:
    """Return index and text of the last user message; None when it has no text."""
    for index in reversed(range(len(body["messages"]))):
        message = body["messages"][index]
        if message["role"] != "user":
            continue
        content = message.get("content")
        if isinstance(content, str):
            return index, content
        texts = [part["text"] for part in content or [] if _is_text(part)]
        return (index, "\n".join(texts)) if texts else (None, "")
    return None, ""


def _is_text(part: dict[str, Any]) -> bool:
    """A part of another kind has no text, and the text of a part may be null."""
    return part.get("type") == "text" and isinstance(part.get("text"), str)
