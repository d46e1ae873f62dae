"""E-mail addresses: plain, at internal hosts, and spelt out ("ilse dot varga at example dot com").

Written here and not taken from presidio, whose recognizer asks tldextract whether the suffix is
public and so loses every address of an internal host, and may fetch a suffix list from the network.
Anchored on the at sign, with bounded context either way, so the cost is linear.
"""

import re
from typing import Final

from privacy.detection.recognizers.support import before, near
from privacy.types import EMAIL, Span

_LOCAL_BACK: Final = re.compile(r"[\w.+'~-]{1,64}\Z")
_LABEL: Final = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_HOST: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL}){{0,8}}|\[[0-9A-Fa-f:.]{{2,45}}\])")
_FILE_SUFFIX: Final = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|css|js|map|woff2?)\Z", re.I)
_VERSION: Final = re.compile(
    r"v?\d[\d.]*\Z|(?:latest|next|beta|alpha|canary|rc|stable|main|master)\Z", re.I
)
_MAIL_WORD: Final = re.compile(r"\b(?:e-?mail|mail|contact|write|reach|address|ssh|login)\b", re.I)
_IN_USERINFO: Final = re.compile(r"://[^\s/@]*\Z")

_AT_WORD: Final = re.compile(r"\s*[\[({<]\s*(?:at|@)\s*[\])}>]\s*|\s+at\s+", re.I)
_DOT: Final = r"(?:\s*[\[({<]\s*(?:dot|\.)\s*[\])}>]\s*|\s+dot\s+|\.)"
_ARTICLES: Final = frozenset("the a an this that".split())  # "look at the dot on the map"
_SPOKEN_LOCAL: Final = re.compile(rf"[\w+'-]{{1,64}}(?:{_DOT}[\w+'-]{{1,64}}){{0,4}}\Z", re.I)
_SPOKEN_HOST: Final = re.compile(rf"{_LABEL}(?:{_DOT}{_LABEL}){{1,5}}", re.I)
_SPOKEN_DOT: Final = re.compile(r"[\[({<]\s*(?:dot|\.)\s*[\])}>]|\s+dot\s+", re.I)


class EmailRecognizer:
    """``local@host``, whatever the host's suffix."""

    name = "email"
    types = (EMAIL,)
    whole_text = True

    def find(self, text: str) -> list[Span]:
        spans: list[Span] = []
        for sign in ("@", "＠"):
            at = text.find(sign)
            while at >= 0:
                span = self._around(text, at)
                if span is not None:
                    spans.append(span)
                at = text.find(sign, at + 1)
        return spans

    def _around(self, text: str, at: int) -> Span | None:
        if at == 0 or at + 1 == len(text) or text[at + 1].isspace() or text[at - 1].isspace():
            return None
        local = _LOCAL_BACK.search(text, max(0, at - 64), at)
        host = _HOST.match(text, at + 1)
        if local is None or host is None:
            return None
        start = local.start() + _leading(local.group())
        if start >= at or _IN_USERINFO.search(before(text, start, 120)):
            return None
        score = self._score(text, start, at, host)
        return None if score is None else Span(start, host.end(), EMAIL, score, self.name)

    def _score(self, text: str, start: int, at: int, host: re.Match[str]) -> float | None:
        name = host.group()
        if _FILE_SUFFIX.search(name) or _VERSION.match(name):
            return None
        if text[start:at] == "git" and text[host.end() : host.end() + 1] in (":", "/"):
            return None
        if "." in name or name.startswith("[") or name.casefold() == "localhost":
            return 0.99
        # A host of one label is also how code multiplies matrices and pins packages.
        if len(name) < 3 or text[max(0, start - 1) : start] == "/":
            return None
        return 0.7 if near(text, start, host.end(), _MAIL_WORD, 32) else 0.4


def _leading(local: str) -> int:
    """Return how many characters at the start of a local part are punctuation around it."""
    return len(local) - len(local.lstrip(".'~-+"))


class SpokenEmailRecognizer:
    """Addresses spelt out to dodge harvesters: "ilse [at] example [dot] com"."""

    name = "email.spoken"
    types = (EMAIL,)

    def find(self, text: str) -> list[Span]:
        lower = text.casefold()
        if "at" not in lower or not ("dot" in lower or "[at" in lower or "(at" in lower):
            return []
        spans = []
        for match in _AT_WORD.finditer(text):
            span = self._around(text, match)
            if span is not None:
                spans.append(span)
        return spans

    def _around(self, text: str, at: re.Match[str]) -> Span | None:
        local = _SPOKEN_LOCAL.search(text, max(0, at.start() - 80), at.start())
        host = _SPOKEN_HOST.match(text, at.end())
        if local is None or host is None:
            return None
        bracketed = not at.group().strip().isalpha()
        spelt = _SPOKEN_DOT.search(host.group()) is not None
        # "we met at example.com" is no address; "at" in words asks for "dot" in words.
        if not (bracketed or spelt):
            return None
        labels = re.split(_DOT, host.group(), flags=re.I)
        last = labels[-1]
        if labels[0].casefold() in _ARTICLES or not (2 <= len(last) <= 24 and last.isalpha()):
            return None
        return Span(local.start(), host.end(), EMAIL, 0.9 if bracketed else 0.8, self.name)
