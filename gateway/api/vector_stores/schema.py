"""Wire shapes of vector stores: requests as pydantic models, responses as builders."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from gateway.api.vector_stores.filters import Filter
from gateway.ingest.chunker import CHARS_PER_TOKEN
from gateway.ingest.pipeline import DEFAULT_CHUNKING
from store.documents import VectorStoreFile, VectorStoreRow

_DAY: Final = 86_400
_Key = Annotated[StrictStr, Field(max_length=64)]
_Text = Annotated[StrictStr, Field(max_length=512)]
_Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Metadata = Annotated[dict[_Key, _Text], Field(max_length=16)]
Attributes = Annotated[dict[_Key, StrictBool | StrictInt | _Number | _Text], Field(max_length=16)]
FileId = Annotated[StrictStr, Field(max_length=64)]


class _Request(BaseModel):
    """Fields that are not known are refused, so that none is dropped silently."""

    model_config = ConfigDict(extra="forbid")


class ExpiresAfter(_Request):
    anchor: Literal["last_active_at"]
    days: int = Field(ge=1, le=365, strict=True)


class StaticSizes(_Request):
    """Sizes in tokens, taken as four characters each."""

    max_chunk_size_tokens: int = Field(ge=100, le=4096, strict=True)
    chunk_overlap_tokens: int = Field(ge=0, strict=True)

    @model_validator(mode="after")
    def _overlap_fits(self) -> "StaticSizes":
        if 2 * self.chunk_overlap_tokens > self.max_chunk_size_tokens:
            raise ValueError("chunk_overlap_tokens must not exceed half of max_chunk_size_tokens")
        return self


class AutoChunking(_Request):
    type: Literal["auto"]


class StaticChunking(_Request):
    type: Literal["static"]
    static: StaticSizes


Chunking = Annotated[AutoChunking | StaticChunking, Field(discriminator="type")]


class CreateVectorStore(_Request):
    name: StrictStr = Field("", max_length=256)
    description: StrictStr | None = Field(None, max_length=1024)
    file_ids: list[FileId] = Field(default_factory=list, max_length=500)
    expires_after: ExpiresAfter | None = None
    chunking_strategy: Chunking | None = None
    metadata: Metadata | None = None


class ModifyVectorStore(_Request):
    name: StrictStr | None = Field(None, max_length=256)
    expires_after: ExpiresAfter | None = None
    metadata: Metadata | None = None


class AttachFile(_Request):
    file_id: FileId
    attributes: Attributes | None = None
    chunking_strategy: Chunking | None = None


class ModifyFile(_Request):
    attributes: Attributes | None


class CreateBatch(_Request):
    file_ids: list[FileId] | None = Field(None, min_length=1, max_length=2000)
    files: list[AttachFile] | None = Field(None, min_length=1, max_length=2000)
    attributes: Attributes | None = None
    chunking_strategy: Chunking | None = None

    @model_validator(mode="after")
    def _one_list(self) -> "CreateBatch":
        if (self.file_ids is None) == (self.files is None):
            raise ValueError("give either file_ids or files")
        return self

    def members(self) -> list[AttachFile]:
        if self.files is not None:
            return self.files
        return [
            AttachFile(
                file_id=each,
                attributes=self.attributes,
                chunking_strategy=self.chunking_strategy,
            )
            for each in self.file_ids or ()
        ]


class Ranking(_Request):
    ranker: Literal["none", "auto", "default-2024-11-15"] | None = None
    score_threshold: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


_Query = Annotated[StrictStr, Field(min_length=1, max_length=32_768)]


class Search(_Request):
    query: _Query | Annotated[list[_Query], Field(min_length=1, max_length=16)]
    filters: Filter | None = None
    max_num_results: int = Field(10, ge=1, le=50, strict=True)
    ranking_options: Ranking = Field(default_factory=Ranking)
    rewrite_query: StrictBool = False

    def queries(self) -> list[str]:
        return [self.query] if isinstance(self.query, str) else self.query


def vector_store_object(row: VectorStoreRow) -> dict[str, Any]:
    """Return a vector store as OpenAI shows it."""
    counts = {**row.file_counts, "total": sum(row.file_counts.values())}
    status = "in_progress" if counts["in_progress"] else "completed"
    if is_expired(row):
        status = "expired"
    return {
        "id": row.id,
        "object": "vector_store",
        "created_at": int(row.created_at),
        "name": row.name,
        "description": row.settings.get("description"),
        "usage_bytes": row.usage_bytes,
        "file_counts": counts,
        "status": status,
        "expires_after": row.settings.get("expires_after"),
        "expires_at": expiry(row),
        "last_active_at": int(row.last_active_at),
        "metadata": dict(row.metadata),
    }


def expiry(row: VectorStoreRow) -> int | None:
    """Return when a vector store expires, in seconds since the epoch, or None."""
    rule = row.settings.get("expires_after")
    return None if not rule else int(row.last_active_at) + rule["days"] * _DAY


def is_expired(row: VectorStoreRow) -> bool:
    """Tell whether a vector store may no longer be searched."""
    expires_at = expiry(row)
    return expires_at is not None and expires_at <= time.time()


def attached_object(row: VectorStoreFile) -> dict[str, Any]:
    """Return an attached file as OpenAI shows it."""
    error = None
    if row.error_code is not None:
        error = {"code": row.error_code, "message": row.error_message or ""}
    return {
        "id": row.file_id,
        "object": "vector_store.file",
        "created_at": int(row.created_at),
        "vector_store_id": row.vector_store_id,
        "usage_bytes": row.usage_bytes,
        "status": row.status,
        "last_error": error,
        "attributes": dict(row.attributes),
        "chunking_strategy": {"type": "static", "static": _sizes(row.chunking)},
    }


def _sizes(chunking: Mapping[str, Any]) -> Mapping[str, int]:
    static: Mapping[str, int] | None = chunking.get("static")
    return static or {
        "max_chunk_size_tokens": DEFAULT_CHUNKING.size // CHARS_PER_TOKEN,
        "chunk_overlap_tokens": DEFAULT_CHUNKING.overlap // CHARS_PER_TOKEN,
    }


def batch_object(
    batch_id: str, vector_store_id: str, created_at: float, files: Sequence[VectorStoreFile]
) -> dict[str, Any]:
    """Return a file batch as OpenAI shows it."""
    statuses = [row.status for row in files]
    counts = {
        name: statuses.count(name) for name in ("in_progress", "completed", "failed", "cancelled")
    }
    status = "completed"
    if counts["in_progress"]:
        status = "in_progress"
    elif counts["cancelled"]:
        status = "cancelled"
    elif statuses and counts["failed"] == len(statuses):
        status = "failed"
    return {
        "id": batch_id,
        "object": "vector_store.files_batch",
        "created_at": int(created_at),
        "vector_store_id": vector_store_id,
        "status": status,
        "file_counts": {**counts, "total": len(statuses)},
    }
