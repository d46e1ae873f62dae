"""Surrogates of URLs and of their personal parts (a name slug, a query value).

The scheme, the port, well-known public hosts, structural path words, file extensions and the names
of query parameters stay; every other host becomes the session's example domain for it, every other
word a made-up one.  Under a well-known host an account name gets digits at the end, so that the
profile it seems to point to does not exist.
"""

import ipaddress
import re
from typing import Final
from urllib.parse import unquote

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, digits, worded
from privacy.surrogates.email import EmailSurrogate
from privacy.surrogates.ip import IpSurrogate
from privacy.types import URL

_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://|//)?(?:(?P<info>[^\s/?#@]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/?#:@]+)?(?P<port>:\d+)?"
    r"(?P<path>/[^\s?#]*)?(?P<query>\?[^\s#]*)?(?P<fragment>#\S*)?\Z"
)
PUBLIC_HOSTS: Final = frozenset(
    "bitbucket.org docs.google.com drive.google.com dropbox.com facebook.com github.com "
    "gitlab.com google.com instagram.com linkedin.com maps.google.com medium.com outlook.com "
    "reddit.com slack.com stackoverflow.com t.me tiktok.com twitter.com wikipedia.org x.com "
    "xing.com youtube.com zoom.us".split()
)
_STRUCTURE: Final = frozenset(
    "account accounts api app apps assets auth author blob branch channel commit company d docs "
    "document download edit en file files folder folders g group groups home id img image images "
    "in index issues login map media member members p page pages people person photo photos post "
    "posts profile profiles project projects public r raw s search settings share spreadsheets "
    "static status tag tree u upload uploads user users v v1 v2 v3 video view watch wiki "
    "www".split()
)
# A list, because ".lund" at the end of a path is a name.
_EXTENSION: Final = re.compile(
    r"\.(?:aspx?|bmp|css|csv|docx?|eml|gif|html?|ics|jpe?g|js|json|jsp|md|mp[34]|pdf|php|png|pptx?"
    r"|rtf|svg|tar\.gz|txt|vcf|webp|xlsx?|xml|ya?ml|zip)\Z",
    re.IGNORECASE,
)
_ESCAPE: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ADDRESS: Final = re.compile(r"[^@/]+(?:@|%40)[^@/]+\.[^@/]+\Z", re.IGNORECASE)
_SHORTEST: Final = 3


class UrlSurrogate(DrawnSurrogate):
    """Keeps the structure of a URL, or the pattern of a part of one."""

    type = URL

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        found = _URL.match(original)
        host = (found.group("host") or "") if found else ""
        whole = found is not None and (
            found.group("scheme") or (found.group("path") and "." in host)
        )
        if found is None or not whole:
            return _value(original, rng, context)
        parts = [
            found.group("scheme") or "",
            _info(found.group("info"), rng),
            "" if not host else self._host(host, found, rng, context),
            found.group("port") or "",
            _path(found.group("path") or "", _is_public(host), rng, context),
            _query(found.group("query") or "", rng, context),
        ]
        fragment = found.group("fragment") or ""
        return "".join(parts) + (fragment[:1] + _value(fragment[1:], rng, context))

    def _host(
        self, host: str, found: re.Match[str], rng: Randomness, context: SurrogateContext
    ) -> str:
        personal = any(found.group(name) for name in ("info", "query", "fragment"))
        path = (found.group("path") or "").strip("/")
        if _is_public(host) and (personal or path):
            return host
        bare = host.strip("[]")
        try:
            ipaddress.ip_address(bare)
        except ValueError:
            return context.domain_for(host, rng)
        return host.replace(bare, IpSurrogate().make(bare, rng, context))


def _is_public(host: str) -> bool:
    name = host.casefold()
    return name.removeprefix("www.") in PUBLIC_HOSTS


def _info(info: str | None, rng: Randomness) -> str:
    if info is None:
        return ""
    user, colon, password = info.partition(":")
    return worded(_plain(user), rng, _SHORTEST) + colon + worded(_plain(password), rng) + "@"


def _path(path: str, public: bool, rng: Randomness, context: SurrogateContext) -> str:
    return "/".join(_segment(part, public, rng, context) for part in path.split("/"))


def _segment(part: str, public: bool, rng: Randomness, context: SurrogateContext) -> str:
    if not part or part.casefold() in _STRUCTURE:
        return part
    found = _EXTENSION.search(part)
    stem = part[: found.start()] if found else part
    drawn = _value(stem, rng, context)
    room = digits(rng, 4) if public and "@" not in drawn else ""
    return drawn + room + (found.group() if found else "")


def _query(query: str, rng: Randomness, context: SurrogateContext) -> str:
    out: list[str] = []
    for part in re.split(r"([?&;])", query):
        key, sign, value = part.partition("=")
        if part in ("?", "&", ";", ""):
            out.append(part)
        elif sign:
            # The name of a parameter is the format of the service, not of the person.
            out.append(key + sign + _value(value, rng, context))
        else:
            out.append(_value(part, rng, context))
    return "".join(out)


def _value(value: str, rng: Randomness, context: SurrogateContext) -> str:
    if _ADDRESS.match(value):
        return EmailSurrogate().draw(value, rng, context)
    parts = re.split(f"({_ESCAPE.pattern})", _plain(value))
    return "".join(p if i % 2 else worded(p, rng, _SHORTEST) for i, p in enumerate(parts))


def _plain(text: str) -> str:
    """Write escaped letters and digits out; other escapes stay, as they are separators."""

    def written_out(found: re.Match[str]) -> str:
        decoded = unquote(found.group())
        return decoded if decoded.isalnum() else "_" if "\ufffd" in decoded else found.group()

    return _ESCAPE.sub(written_out, text)
