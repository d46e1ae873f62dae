"""Ingestion of one attached file, in a thread of its own pool; it never lets an error escape unrecorded."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from gateway.ingest.chunker import CHARS_PER_TOKEN, ChunkingOptions, chunk
from gateway.ingest.parsers.base import IngestError, Parsed
from gateway.ingest.parsers.registry import parse
from gateway.services import Services
from store.documents import NewChunk
from store.errors import NotFound, StoreError

_log = logging.getLogger(__name__)

DEFAULT_CHUNKING: Final = ChunkingOptions()
_SERVER_ERROR: Final = "The server could not process the file. Attach it again."


def submit_ingestion(
    tenant_id: str, file_id: str, vector_store_id: str, services: Services
) -> None:
    """Ingest an attached file in the pool for ingestion; returns at once."""
    try:
        services.ingestion.submit(ingest_file, tenant_id, file_id, vector_store_id, services)
    except RuntimeError:  # the pool is shutting down; the next start resumes what is in progress
        _log.info("ingestion of %s waits for the next start", file_id)


def ingest_file(tenant_id: str, file_id: str, vector_store_id: str, services: Services) -> None:
    """Parse, detect, chunk, encode and store one attached file; sets its status.

    Ends with the status ``completed`` or ``failed``. Nothing is stored of a file that was
    detached, deleted or cancelled meanwhile. Raises nothing: it is the last frame of its thread.
    """
    try:
        _ingest(tenant_id, file_id, vector_store_id, services)
    except NotFound:
        _log.info("%s was detached or cancelled during ingestion", file_id)
    except IngestError as error:
        _fail(tenant_id, file_id, vector_store_id, services, error)
    except Exception as error:
        # The class only: the message of a library may quote the document.
        _log.error("ingestion of %s failed: %s", file_id, type(error).__name__)
        reason = IngestError("server_error", _SERVER_ERROR)
        _fail(tenant_id, file_id, vector_store_id, services, reason)


def resume_ingestion(services: Services) -> int:
    """Start again what was ``in_progress`` when the server stopped; returns how many files.

    Call it once at the start, when the services are ready.
    """
    pending = services.documents.pending()
    for tenant_id, vector_store_id, file_id in pending:
        submit_ingestion(tenant_id, file_id, vector_store_id, services)
    return len(pending)


def chunking_options(strategy: Mapping[str, Any]) -> ChunkingOptions:
    """Return sizes in characters for a stored chunking strategy of the API (in tokens)."""
    static = strategy.get("static")
    if not static:
        return DEFAULT_CHUNKING
    return ChunkingOptions(
        int(static["max_chunk_size_tokens"]) * CHARS_PER_TOKEN,
        int(static["chunk_overlap_tokens"]) * CHARS_PER_TOKEN,
    )


def _ingest(tenant_id: str, file_id: str, vector_store_id: str, services: Services) -> None:
    attached = services.documents.file(tenant_id, vector_store_id, file_id)
    if attached.status != "in_progress":
        return
    row = services.files.get(tenant_id, file_id)
    parsed = parse(row.filename, services.files.content(tenant_id, file_id))
    chunks = make_chunks(parsed, chunking_options(attached.chunking), services)
    services.documents.add_chunks(tenant_id, vector_store_id, file_id, chunks)


def make_chunks(parsed: Parsed, options: ChunkingOptions, services: Services) -> list[NewChunk]:
    """Detect on the whole document, cut it, encode the pieces.

    The title goes into the vector but not into the stored text, where it would have to be detected
    and paid for once per chunk.
    """
    (spans,) = services.detector.detect([parsed.text])
    pieces = chunk(parsed.text, spans, options, parsed.separators)
    title = parsed.title.strip()[:200]
    vectors = services.encoder.encode([f"{title}\n{p.text}" if title else p.text for p in pieces])
    return [
        NewChunk(piece.text, piece.spans, vector)
        for piece, vector in zip(pieces, vectors, strict=True)
    ]


def _fail(
    tenant_id: str, file_id: str, vector_store_id: str, services: Services, error: IngestError
) -> None:
    try:
        services.documents.fail(tenant_id, vector_store_id, file_id, error.code, error.message)
    except NotFound:
        _log.info("%s was detached during ingestion", file_id)
    except StoreError as broken:
        # It stays in progress and is resumed at the next start.
        _log.error("cannot record a failed ingestion: %s", type(broken).__name__)
