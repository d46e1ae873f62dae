"""Wallet addresses: Bitcoin through presidio's checksums, Ethereum by form."""

import re
from typing import Final

from privacy.detection.recognizers.support import PresidioPattern, digest_of
from privacy.types import CRYPTO_WALLET, Span

_BITCOIN: Final = re.compile(r"(?<![A-Za-z0-9])(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,59}(?![A-Za-z0-9])")
_ETHEREUM: Final = re.compile(r"(?<![A-Za-z0-9])0x[0-9a-fA-F]{40}(?![A-Za-z0-9])")


class CryptoRecognizer:
    """Bitcoin (base58check, bech32) and Ethereum addresses."""

    name = "crypto"
    types = (CRYPTO_WALLET,)

    def __init__(self) -> None:
        self._presidio = PresidioPattern("generic.crypto_recognizer", "CryptoRecognizer")

    def find(self, text: str) -> list[Span]:
        spans = self._presidio.spans(
            text,
            digest_of(text, _BITCOIN),
            CRYPTO_WALLET,
            self.name,
            lambda _t, _s, _e, score: 0.99 if score == 1.0 else None,
        )
        spans.extend(
            Span(match.start(), match.end(), CRYPTO_WALLET, 0.9, self.name)
            for match in _ETHEREUM.finditer(text)
        )
        return spans
