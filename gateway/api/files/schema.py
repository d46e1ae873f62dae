"""Wire shapes of files."""

from typing import Any, Final, Literal, get_args

from store.files import FileRow

Purpose = Literal["assistants", "batch", "fine-tune", "vision", "user_data", "evals"]
PURPOSES: Final[tuple[str, ...]] = get_args(Purpose)
# What a list may be restricted to: uploads, and what fine-tuning jobs leave.
Listed = Literal[Purpose, "fine-tune-results"]
Order = Literal["asc", "desc"]


def file_object(row: FileRow) -> dict[str, Any]:
    """Return a file as OpenAI shows it."""
    return {
        "id": row.id,
        "object": "file",
        "bytes": row.size,
        "created_at": int(row.created_at),
        "expires_at": None,
        "filename": row.filename,
        "purpose": row.purpose,
        "status": "processed",
        "status_details": None,
    }


def page(items: list[dict[str, Any]], has_more: bool) -> dict[str, Any]:
    """Return a page of a cursor-paged list."""
    return {
        "object": "list",
        "data": items,
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }
