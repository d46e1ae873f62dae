"""MAC addresses, through presidio's pattern."""

import re
from typing import Final

from privacy.detection.recognizers.support import PresidioPattern, digest_of
from privacy.types import MAC_ADDRESS, Span

_CANDIDATE: Final = re.compile(
    r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])"
    r"|(?<![\w.])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![\w.])"
)


class MacRecognizer:
    """Colon, hyphen and Cisco forms; broadcast and null addresses are nobody's."""

    name = "mac"
    types = (MAC_ADDRESS,)

    def __init__(self) -> None:
        self._presidio = PresidioPattern("generic.mac_recognizer", "MacAddressRecognizer")

    def find(self, text: str) -> list[Span]:
        return self._presidio.spans(
            text, digest_of(text, _CANDIDATE), MAC_ADDRESS, self.name, _judge
        )


def _judge(text: str, start: int, end: int, _score: float) -> float | None:
    # Three groups of four digits without a letter are a number with dots, not hardware.
    value = text[start:end]
    return None if value.count(".") == 2 and value.replace(".", "").isdigit() else 0.95
