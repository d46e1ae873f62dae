"""Names of internal machines: ``db01.corp.internal``, ``printer.lan``, ``\\\\fileserver\\share``."""

import re
from typing import Final

from privacy.detection.recognizers.support import before, group_span
from privacy.types import HOST, Span

# Suffixes that no public registry delegates (RFC 6762 appendix G, RFC 8375, ICANN's .internal).
_SUFFIX: Final = r"internal|intranet|corp|lan|localdomain|private|home\.arpa|local|home"
_HOST: Final = re.compile(
    rf"(?<![\w@.%+/\\-])(?P<host>(?:[A-Za-z0-9][A-Za-z0-9-]{{0,62}}\.){{1,6}}(?:{_SUFFIX}))(?![\w-]|\.\w|\()",
    re.I,
)
_URL_HOST: Final = re.compile(
    rf"(?<=//)(?:[^\s/@]{{1,64}}@)?(?P<host>(?:[A-Za-z0-9][A-Za-z0-9-]{{0,62}}\.){{1,6}}(?:{_SUFFIX}))(?![\w-]|\.\w)",
    re.I,
)
_UNC: Final = re.compile(r"(?<![\\\w])\\\\(?P<host>[A-Za-z][\w-]{2,62})\\[\w$]")
_WEAK: Final = re.compile(r"\.(?:local|home|private|corp|internal)\Z", re.I)
_CODE_ROOT: Final = re.compile(
    r"(?:com|org|net|io|java|javax|sun|self|this|cls|np|tf|os|sys|threading|config|settings)\.",
    re.I,
)
_CONTEXT: Final = re.compile(
    r"\b(?:host(?:name)?|server|machine|node|domain|ssh|ping|rdp|dns|vpn|fqdn|on|at)\b[\s:=]*\Z",
    re.I,
)


class HostRecognizer:
    """Hosts under suffixes that only an internal network resolves."""

    name = "host"
    types = (HOST,)

    def find(self, text: str) -> list[Span]:
        spans = [
            group_span(match, "host", HOST, 0.9, self.name) for match in _URL_HOST.finditer(text)
        ]
        for match in _HOST.finditer(text):
            score = _score(text, match)
            if score is not None:
                spans.append(group_span(match, "host", HOST, score, self.name))
        if "\\\\" in text:
            spans.extend(group_span(m, "host", HOST, 0.8, self.name) for m in _UNC.finditer(text))
        return spans


def _score(text: str, match: re.Match[str]) -> float | None:
    host = match.group("host")
    if _CODE_ROOT.match(host) or "_" in host:
        return None
    labels = host.split(".")
    # threading.local and settings.private are code; a hyphen, a digit or a second label is not.
    telling = len(labels) > 2 or any(c.isdigit() or c == "-" for c in labels[0])
    if telling or not _WEAK.search(host):
        return 0.85
    return 0.7 if _CONTEXT.search(before(text, match.start(), 24)) else None
