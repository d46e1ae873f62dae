"""Encryption at rest: a master key wraps tenant keys, a tenant key wraps session keys.

Values are sealed with AES-256-GCM (NIST SP 800-38D) under a random 96-bit nonce.  The associated
data names the tenant, the table and the row (and the column where a row has several sealed
values), so a ciphertext moved to another place does not open.  Equality is searched over blind
indexes, HMAC-SHA256 under a key of its own.  Both keys come from one 32-byte data key through
HKDF-SHA256 (RFC 5869), so what is destroyed when a data key goes is everything it protected.
"""

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from store.errors import MasterKeyError, SealBroken

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
_FORMAT: Final = b"\x01"


def place(*parts: str) -> bytes:
    """Return the associated data of a place; each part carries its length, so none can shift."""
    # Text out of JSON may hold lone surrogates; the default would refuse them and quote the text.
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _derive(raw: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=b"penname/1/" + purpose).derive(raw)


class DataKey:
    """A 32-byte key that seals values and computes blind indexes.  Safe to share by threads."""

    __slots__ = ("_aead", "_index", "_raw")

    def __init__(self, raw: bytes) -> None:
        if len(raw) != KEY_BYTES:
            raise ValueError(f"a data key has {KEY_BYTES} bytes, not {len(raw)}")
        self._raw = raw
        self._aead = AESGCM(_derive(raw, b"seal"))
        self._index = _derive(raw, b"index")

    def __repr__(self) -> str:
        return "DataKey(...)"

    @classmethod
    def generate(cls) -> "DataKey":
        """Return a new key from the operating system's CSPRNG."""
        return cls(secrets.token_bytes(KEY_BYTES))

    def seal(self, plain: bytes, *where: str) -> bytes:
        """Encrypt ``plain`` for one place (tenant, table, row, ...).

        The result is format byte, nonce (12), ciphertext and tag (16): 29 bytes longer.
        """
        nonce = secrets.token_bytes(NONCE_BYTES)
        return _FORMAT + nonce + self._aead.encrypt(nonce, plain, place(*where))

    def open(self, blob: bytes, *where: str) -> bytes:
        """Decrypt what `seal` gave for the same place.  Raises SealBroken otherwise."""
        head = len(_FORMAT)
        try:
            if blob[:head] != _FORMAT:
                raise ValueError("unknown format")
            nonce = blob[head : head + NONCE_BYTES]
            return self._aead.decrypt(nonce, blob[head + NONCE_BYTES :], place(*where))
        except (InvalidTag, ValueError):
            pass
        raise SealBroken(
            f"A stored value of table {where[1] if len(where) > 1 else '?'!r} cannot be decrypted: "
            "it was damaged, moved, or written under another key. Restore it from a backup."
        )

    def blind(self, purpose: str, value: str) -> bytes:
        """Return the 32-byte blind index of ``value``; equal for equal (purpose, value) only."""
        return hmac.digest(self._index, place(purpose, value), "sha256")

    def wrap(self, child: "DataKey", *where: str) -> bytes:
        """Seal another data key under this one."""
        return self.seal(child._raw, *where)

    def unwrap(self, blob: bytes, *where: str) -> "DataKey":
        """Open a data key that `wrap` sealed.  Raises SealBroken."""
        return DataKey(self.open(blob, *where))


def key_id(raw: bytes) -> str:
    """Return the public name of a master key: says which key it is and nothing about it."""
    return "mk_" + hmac.digest(raw, b"penname/1/key-id", hashlib.sha256).hex()[:16]


class Keyring:
    """The master key in use and, during a rotation, the keys that it replaces."""

    def __init__(self, current: bytes, previous: Iterable[bytes] = ()) -> None:
        if len(current) != KEY_BYTES:
            raise MasterKeyError(
                f"A master key has {KEY_BYTES} bytes; this one has {len(current)}."
            )
        self.current_id = key_id(current)
        self._keys = {key_id(raw): DataKey(raw) for raw in (*previous, current)}

    def __repr__(self) -> str:
        return f"Keyring(current={self.current_id}, known={sorted(self._keys)})"

    @property
    def known_ids(self) -> frozenset[str]:
        """Ids of all master keys that this ring can unwrap with."""
        return frozenset(self._keys)

    @classmethod
    def load(
        cls, value: str | None, path: Path, *, previous: Iterable[str] = (), create: bool = True
    ) -> "Keyring":
        """Return the ring from a base64 value, or else from the key file at ``path``.

        Args:
            value: Base64 (either alphabet) of 32 bytes, usually from the environment; wins over
                the file when it is not empty.
            path: Key file, mode 0600, one base64 line; made atomically when absent.
            previous: Base64 values of keys that are being rotated out.
            create: Whether an absent file may be made.

        Raises:
            MasterKeyError: Malformed key, file readable by others, unreadable or absent file.
        """
        old = [_decode(item, "A previous master key") for item in previous]
        if value and value.strip():
            return cls(_decode(value, "The master key in the environment"), old)
        return cls(read_key_file(path, create=create), old)

    def wrap(self, child: DataKey, *where: str) -> tuple[str, bytes]:
        """Seal a tenant key under the current master key; returns (master key id, blob)."""
        return self.current_id, self._keys[self.current_id].wrap(child, *where)

    def unwrap(self, master_key_id: str, blob: bytes, *where: str) -> DataKey:
        """Open a tenant key.  Raises MasterKeyError when its master key is not in the ring."""
        key = self._keys.get(master_key_id)
        if key is None:
            raise wrong_key(master_key_id, self.current_id)
        return key.unwrap(blob, *where)


def wrong_key(needed: str, given: str) -> MasterKeyError:
    """Return the error for a database that needs another master key than the one given."""
    return MasterKeyError(
        f"This database is encrypted under master key {needed}, but the key given is {given}. "
        "Give the right key file or environment value; without it the stored data cannot be read."
    )


def generate_master_key() -> str:
    """Return a fresh master key as base64 text, for an environment variable or a key file."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def _decode(text: str, what: str) -> bytes:
    compact = "".join(text.split()).replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise MasterKeyError(
            f"{what} must be {KEY_BYTES} bytes in base64, 44 characters. "
            "Make one with: head -c 32 /dev/urandom | base64"
        )
    return raw


def read_key_file(path: Path, *, create: bool = True) -> bytes:
    """Return the 32 bytes of the key file, making it first when it is absent and may be made.

    Raises:
        MasterKeyError: The file is readable by others, malformed, unreadable, or absent.
    """
    try:
        if create and not path.exists():
            _create_key_file(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text()
    except FileNotFoundError:
        problem = f"There is no master key file at {path}. Restore it, or let it be made anew."
    except (OSError, UnicodeDecodeError) as error:
        problem = f"The master key file {path} cannot be used: {type(error).__name__}."
    else:
        if os.name == "posix" and mode & 0o077:
            raise MasterKeyError(
                f"The master key file {path} can be read by others (mode {mode:04o}). "
                f"Run: chmod 600 {path}"
            )
        return _decode(text, f"The master key file {path}")
    raise MasterKeyError(problem)


def _create_key_file(path: Path) -> None:
    """Put a new key at ``path`` unless somebody else does first; readers never see half a key."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as out:
            out.write(generate_master_key() + "\n")
            out.flush()
            os.fsync(out.fileno())
        # A link, unlike a rename, fails when the target exists: the first writer wins.
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename or link inside ``folder`` survive a power failure (no-op where impossible)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
