"""Reading a multipart upload within a bound, in memory only.

The framework would spool uploads above 1 MiB to the temporary folder, in the clear; what is
uploaded here is what the gateway exists to protect, so it goes from memory to the encrypted store.
"""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from fastapi import Request
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from gateway.api.files.schema import PURPOSES
from gateway.errors import ApiError, bad_request

_FORM_OVERHEAD: Final = 64 * 1024  # part headers, boundaries and the small fields
_MAX_NAME: Final = 255
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Upload:
    """An upload that was received completely."""

    filename: str = field(repr=False)
    purpose: str
    content: bytes = field(repr=False)


async def read_upload(request: Request, limit: int) -> Upload:
    """Return the file of a multipart form.

    Args:
        limit: Largest file in bytes.

    Raises:
        ApiError: 400 for a malformed form, 413 when the file is too large.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise bad_request("Send the file as multipart/form-data, with fields file and purpose.")
    form = await _form(request, limit)
    try:
        file, purpose = form.get("file"), form.get("purpose")
        if not isinstance(file, UploadFile):
            raise bad_request("The form has no file in its field 'file'.", "file")
        if not isinstance(purpose, str) or purpose not in PURPOSES:
            raise bad_request(f"purpose must be one of {', '.join(PURPOSES)}.", "purpose")
        if any(name.startswith("expires_after") for name in form):
            raise bad_request("Files do not expire here; delete them instead.", "expires_after")
        content = await file.read()
        if len(content) > limit:
            raise _too_large(limit)
        if not content:
            raise bad_request("The file is empty.", "file")
        return Upload(safe_filename(file.filename or ""), purpose, content)
    finally:
        await form.close()


def safe_filename(name: str) -> str:
    """Return the last part of a path, without control characters, at most 255 characters.

    Raises:
        ApiError: 400 when nothing remains.
    """
    base = PurePosixPath(_UNPRINTABLE.sub("", name).replace("\\", "/")).name.strip()
    if base in ("", ".", ".."):
        raise bad_request("The file needs a name.", "file")
    if len(base) <= _MAX_NAME:
        return base
    suffix = PurePosixPath(base).suffix[:20]
    return base[: _MAX_NAME - len(suffix)] + suffix


async def _form(request: Request, limit: int) -> FormData:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit + _FORM_OVERHEAD:
        raise _too_large(limit)
    parser = MultiPartParser(
        request.headers, _bounded(request, limit), max_files=1, max_fields=8, max_part_size=4096
    )
    parser.spool_max_size = limit + _FORM_OVERHEAD + 1  # never rolled over to a file on disk
    try:
        return await parser.parse()
    except (MultiPartException, KeyError, UnicodeError):
        raise bad_request("The multipart form is malformed.") from None
    except ClientDisconnect:
        raise bad_request("The request ended before its body was complete.") from None


async def _bounded(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    received = 0
    async for part in request.stream():
        received += len(part)
        if received > limit + _FORM_OVERHEAD:
            raise _too_large(limit)
        yield part


def _too_large(limit: int) -> ApiError:
    return ApiError(
        413,
        f"The file is larger than {limit} bytes. Split it, or raise PENNAME_MAX_UPLOAD_BYTES.",
        code="file_too_large",
        param="file",
    )
