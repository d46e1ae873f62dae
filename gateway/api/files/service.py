"""The work behind the file routes.  Everything blocks; call it in a worker thread."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from gateway.api.files.schema import Order, file_object, page
from gateway.api.files.upload import Upload
from gateway.errors import ApiError, bad_request, not_found
from gateway.services import Services
from store.errors import NotFound
from store.files import FileRow

_ID: Final = re.compile(r"(?:file-|vs_|vsfb_)[0-9A-Za-z]{1,60}")


@contextmanager
def or_404(kind: str, param: str = "id") -> Iterator[None]:
    """Turn the store's NotFound into a 404 that names the kind of thing, not its id."""
    try:
        yield
    except NotFound:
        raise missing(kind, param) from None


def missing(kind: str, param: str = "id") -> ApiError:
    return not_found(f"There is no such {kind}.", param=param)


def check_id(identifier: str, kind: str, param: str = "id") -> str:
    """Return an id of the right form.  Raises ApiError 404 otherwise, before any query."""
    if not _ID.fullmatch(identifier):
        raise missing(kind, param)
    return identifier


def create_file(services: Services, tenant_id: str, upload: Upload) -> dict[str, Any]:
    """Store an upload."""
    row = services.files.create(tenant_id, upload.filename, upload.purpose, upload.content)
    return file_object(row)


def list_files(
    services: Services,
    tenant_id: str,
    *,
    purpose: str | None,
    after: str | None,
    limit: int,
    order: Order,
) -> dict[str, Any]:
    """Return a page of files, one more being read to know whether there is a next page."""
    if after is not None and not _ID.fullmatch(after):
        raise bad_after()
    try:
        rows = services.files.list(
            tenant_id, purpose=purpose, after=after, limit=limit + 1, order=order
        )
    except NotFound:
        raise bad_after() from None
    return page([file_object(row) for row in rows[:limit]], len(rows) > limit)


def bad_after(param: str = "after") -> ApiError:
    return bad_request(f"{param} is not the id of an object in this list.", param)


def get_file(services: Services, tenant_id: str, file_id: str) -> FileRow:
    """Return a file's row.  Raises ApiError 404."""
    with or_404("file", "file_id"):
        return services.files.get(tenant_id, check_id(file_id, "file", "file_id"))


def file_content(services: Services, tenant_id: str, file_id: str) -> tuple[FileRow, bytes]:
    """Return a file and its content.  Raises ApiError 404."""
    row = get_file(services, tenant_id, file_id)
    with or_404("file", "file_id"):
        return row, services.files.content(tenant_id, file_id)


def delete_file(services: Services, tenant_id: str, file_id: str) -> dict[str, Any]:
    """Delete a file and its chunks in every vector store.  Raises ApiError 404."""
    if not services.files.delete(tenant_id, check_id(file_id, "file", "file_id")):
        raise missing("file", "file_id")
    return {"id": file_id, "object": "file", "deleted": True}
