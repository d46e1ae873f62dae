"""IP addresses, through presidio's patterns; versions and scopes of code are left alone."""

import ipaddress
import re
from typing import Final

from privacy.detection.recognizers.support import PresidioPattern, before, digest_of
from privacy.types import IP_ADDRESS, Span

_CANDIDATE: Final = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,3})?(?![\w]|\.\d)"
    r"|(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:|::)[0-9A-Fa-f:]{2,40}(?:[.\d]{0,15}\d)?"
    r"(?:%\w{1,12})?(?:/\d{1,3})?(?![\w:])"
)
_VERSION_WORD: Final = re.compile(
    r"(?:\b(?:version|ver|release|build|v|section|sec|chapter|oid|sdk|firmware)\.?\s?|[=<>~^]=?\s?\"?|-)\Z",
    re.I,
)
_IP_WORD: Final = re.compile(r"\b(?:ip|ipv4|ipv6|address|host|addr|client|server)\b", re.I)


class IpRecognizer:
    """IPv4 and IPv6 addresses that point to some machine: not loopback, not unspecified."""

    name = "ip"
    types = (IP_ADDRESS,)

    def __init__(self) -> None:
        self._presidio = PresidioPattern("generic.ip_recognizer", "IpRecognizer")

    def find(self, text: str) -> list[Span]:
        return self._presidio.spans(
            text, digest_of(text, _CANDIDATE), IP_ADDRESS, self.name, _judge
        )


def _judge(text: str, start: int, end: int, _score: float) -> float | None:
    value = text[start:end]
    try:
        address = ipaddress.ip_interface(value.split("%")[0]).ip
    except ValueError:
        return None
    if address.is_loopback or address.is_unspecified or value.startswith("255."):
        return None
    context = before(text, start, 24)
    if address.version == 4:
        if _VERSION_WORD.search(context) and not _IP_WORD.search(context):
            return None
        return 0.95
    if (
        "::" in value
        and "." not in value
        and len([group for group in value.split(":") if group]) < 3
    ):
        return 0.7 if _IP_WORD.search(context) else None
    return 0.95
