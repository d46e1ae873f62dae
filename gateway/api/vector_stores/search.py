"""Search: the query is encoded here and compared with the vectors of the originals."""

from typing import Any

from gateway.api.files.service import or_404
from gateway.api.vector_stores.filters import matches
from gateway.api.vector_stores.schema import Search
from gateway.api.vector_stores.service import VectorStoreService

_ALL = 1_000_000


def search(service: VectorStoreService, store_id: str, request: Search) -> dict[str, Any]:
    """Return a page of the best chunks; of several queries the best score of a chunk counts.

    The texts are originals: they go to the tenant that owns them and to nobody else.

    Raises:
        ApiError: 404 when there is no such vector store, 400 when it has expired.
    """
    service.live(store_id)
    services, tenant_id = service.services, service.tenant_id
    best: dict[int, float] = {}
    with or_404("vector store", "vector_store_id"):
        allowed = _files(service, store_id, request)
        for vector in services.encoder.encode(request.queries()):
            hits = services.vectors.search(
                tenant_id, [store_id], vector, request.max_num_results, file_ids=allowed
            )
            for chunk_id, score in hits:
                best[chunk_id] = max(score, best.get(chunk_id, -1.0))
        ranked = sorted(best, key=lambda chunk_id: (-best[chunk_id], chunk_id))
        ranked = [each for each in ranked if best[each] >= request.ranking_options.score_threshold]
        chunks = services.documents.chunks(tenant_id, ranked[: request.max_num_results])
        services.documents.touch(tenant_id, store_id)
    return {
        "object": "vector_store.search_results.page",
        "search_query": request.queries(),
        "data": [
            {
                "file_id": chunk.file_id,
                "filename": chunk.filename,
                # A cosine may be slightly negative or, by rounding, slightly above one.
                "score": min(1.0, max(0.0, best[chunk.id])),
                "attributes": dict(chunk.attributes),
                "content": [{"type": "text", "text": chunk.text}],
            }
            for chunk in chunks
        ],
        "has_more": False,
        "next_page": None,
    }


def _files(service: VectorStoreService, store_id: str, request: Search) -> list[str] | None:
    if request.filters is None:
        return None
    rows = service.services.documents.files(service.tenant_id, store_id, limit=_ALL)
    return [row.file_id for row in rows if matches(request.filters, row.attributes)]
