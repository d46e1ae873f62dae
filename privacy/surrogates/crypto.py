"""Surrogates of wallet addresses: well-formed, with a checksum, and without a key.

The hash inside is random but for eight zero bytes in its middle.  An address is the hash of a key;
nobody can find a key for a chosen hash, so what is sent there is lost, and nobody receives it.
Formats: Base58Check (Bitcoin, Litecoin, Dogecoin, Tron), Bech32 and Bech32m (BIP 173, BIP 350), and
hexadecimal (Ethereum, lower case and so without the checksum of EIP-55).
"""

import hashlib
import re
from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, pick, redrawn
from privacy.types import CRYPTO_WALLET

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_CONSTANT: Final = 1
_BECH32M_CONSTANT: Final = 0x2BC830A3
_HASH_BYTES: Final = 20
_ZERO_BYTES: Final = 8


class WalletSurrogate(DrawnSurrogate):
    """Keeps the network, the kind of address and the case."""

    type = CRYPTO_WALLET

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        if re.fullmatch(r"0x[0-9a-fA-F]{40}", original):
            return "0x" + _marked(_HASH_BYTES, rng).hex()
        head, separator, tail = original.lower().rpartition("1")
        if separator and head.isalpha() and len(tail) > 30 and all(c in _BECH32 for c in tail):
            drawn = _bech32(head, _BECH32.index(tail[0]), len(tail), rng)
            return drawn.upper() if original.isupper() else drawn
        decoded = _base58_decode(original)
        if decoded is not None and len(decoded) > _HASH_BYTES:
            version = decoded[:-_HASH_BYTES]
            return _base58_encode(version + _marked(_HASH_BYTES, rng))
        if len(original) > 20 and all(char in _BASE58 for char in original):
            return original[0] + "".join(pick(rng, _BASE58) for _ in original[1:])
        return redrawn(original, rng)


def _marked(size: int, rng: Randomness) -> bytes:
    """Return random bytes with zeros from the fifth on."""
    drawn = bytes(1 + rng.below(255) for _ in range(size))
    return drawn[:4] + bytes(_ZERO_BYTES) + drawn[4 + _ZERO_BYTES :]


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]


def _base58_encode(payload: bytes) -> str:
    data = payload + _checksum(payload)
    value = int.from_bytes(data)
    out = ""
    while value:
        value, rest = divmod(value, 58)
        out = _BASE58[rest] + out
    return "1" * (len(data) - len(data.lstrip(b"\x00"))) + out


def _base58_decode(text: str) -> bytes | None:
    """Return the payload of a Base58Check string, or None when it is none."""
    value = 0
    for char in text:
        if char not in _BASE58:
            return None
        value = value * 58 + _BASE58.index(char)
    zeros = len(text) - len(text.lstrip("1"))
    data = bytes(zeros) + value.to_bytes((value.bit_length() + 7) // 8)
    payload = data[:-4]
    return payload if len(data) > 4 and _checksum(payload) == data[-4:] else None


def _bech32(prefix: str, version: int, length: int, rng: Randomness) -> str:
    size = 20 if length < 50 else 32
    program = _five_bits(_marked(size, rng))
    data = [version, *program]
    constant = _BECH32_CONSTANT if version == 0 else _BECH32M_CONSTANT
    values = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix] + data
    check = _polymod([*values, 0, 0, 0, 0, 0, 0]) ^ constant
    data += [(check >> 5 * (5 - i)) & 31 for i in range(6)]
    return prefix + "1" + "".join(_BECH32[value] for value in data)


def _polymod(values: list[int]) -> int:
    """The checksum of BIP 173."""
    state = 1
    for value in values:
        top = state >> 25
        state = (state & 0x1FFFFFF) << 5 ^ value
        for i, generator in enumerate(_GENERATOR):
            state ^= generator if (top >> i) & 1 else 0
    return state


def _five_bits(data: bytes) -> list[int]:
    bits = "".join(f"{byte:08b}" for byte in data)
    bits += "0" * (-len(bits) % 5)
    return [int(bits[i : i + 5], 2) for i in range(0, len(bits), 5)]
