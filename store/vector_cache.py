"""The file that keeps an index between runs: encrypted, authenticated, replaced atomically.

Embeddings can be inverted to text, so the file is sealed under the tenant's key like the rows that
it was built from.  The tags of AES-GCM serve as its checksum: a flipped bit, a truncated or a
swapped file does not open, and the index is then built from SQL again.
"""

import json
import os
import secrets
import struct
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from store.crypto import DataKey, sync_folder
from store.errors import SealBroken

_MAGIC: Final = b"PNVX1\n"
_SEGMENT: Final = 64 << 20
_LENGTH: Final = struct.Struct("<Q")
SUFFIX: Final = ".pnvx"


@dataclass(frozen=True)
class Header:
    """What the index was built from.  Stored in the clear, authenticated with the content."""

    tenant_id: str
    vector_store_id: str
    version: int
    size: int


def cache_path(folder: Path, vector_store_id: str) -> Path:
    """Return where the index of a vector store is kept."""
    return folder / f"{vector_store_id}{SUFFIX}"


def save(folder: Path, key: DataKey, header: Header, content: bytes) -> None:
    """Write the file (mode 0600) and make it durable before it takes the old one's place.

    Raises OSError, for example on a full disk; the old file is intact then.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = cache_path(folder, header.vector_store_id)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    head = json.dumps(asdict(header)).encode()
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(_MAGIC + _LENGTH.pack(len(head)) + head)
            for number, start in enumerate(range(0, len(content), _SEGMENT)):
                sealed = key.seal(content[start : start + _SEGMENT], *_place(head, number))
                out.write(_LENGTH.pack(len(sealed)) + sealed)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(folder)


def read(folder: Path, key: DataKey, tenant_id: str, vector_store_id: str) -> tuple[int, bytes]:
    """Return (version, content) of a kept index.

    Raises:
        FileNotFoundError: There is none.
        SealBroken: It is damaged, or belongs to another vector store or key.
    """
    raw = memoryview(cache_path(folder, vector_store_id).read_bytes())
    with suppress(ValueError, KeyError, TypeError, struct.error):
        head, rest = _split(raw, len(_MAGIC))
        header = Header(**json.loads(bytes(head)))
        ours = (header.tenant_id, header.vector_store_id) == (tenant_id, vector_store_id)
        if bytes(raw[: len(_MAGIC)]) == _MAGIC and ours:
            content = _open_segments(key, bytes(head), rest)
            if len(content) == header.size:
                return header.version, content
    raise SealBroken("The kept vector index is damaged; it will be built anew.")


def _open_segments(key: DataKey, head: bytes, rest: memoryview) -> bytes:
    parts: list[bytes] = []
    while rest:
        sealed, rest = _split(rest, 0)
        parts.append(key.open(bytes(sealed), *_place(head, len(parts))))
    return b"".join(parts)


def _split(raw: memoryview, start: int) -> tuple[memoryview, memoryview]:
    (length,) = _LENGTH.unpack_from(raw, start)
    start += _LENGTH.size
    if len(raw) < start + length:
        raise ValueError("truncated")
    return raw[start : start + length], raw[start + length :]


def _place(head: bytes, number: int) -> tuple[str, ...]:
    header = Header(**json.loads(head))
    return header.tenant_id, "vector_cache", head.decode(), str(number)
