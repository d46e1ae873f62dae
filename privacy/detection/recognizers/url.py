"""The personal parts of URLs: credentials, account segments, names and personal query values.

The rest of a URL stays as it is, so links keep working and image data is never touched.
"""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_plus

from privacy.detection.common_words import is_common_word
from privacy.detection.wordlists import family_names, given_names
from privacy.types import SECRET, URL, USERNAME, Span

_URL: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{1,15})://[^\s<>\"'`{}|\\^]{3,2048}"
)
_BARE_PROFILE: Final = re.compile(
    r"(?<![\w.@/-])(?:www\.)?(?:linkedin\.com/in|facebook\.com|instagram\.com|twitter\.com|x\.com|github\.com|"
    r"gitlab\.com|t\.me|tiktok\.com/@|youtube\.com/@|medium\.com/@)/?(?P<user>[\w.-]{3,40})(?![\w/])",
    re.I,
)
_USERINFO: Final = re.compile(
    r"://(?P<user>[^\s/?#:@]{1,128})(?::(?P<password>[^\s/?#@]{1,256}))?@"
)
_ACCOUNT: Final = re.compile(
    r"/(?:(?:users?|u|profiles?|people|person|members?|accounts?|author)/|~)(?P<user>[A-Za-z][\w.%+-]{2,63})(?=[/?#.,;:]|$)",
    re.I,
)
_SOCIAL: Final = re.compile(
    r"://(?:www\.)?(?:(?:facebook|instagram|twitter|x|t|tiktok|medium)\.(?:com|me)/@?(?P<user>[\w.-]{3,40})(?=[/?#]|$)"
    # A repository belongs to a project; an account page alone is somebody's.
    r"|(?:github|gitlab)\.com/(?P<account>[\w-]{3,40})/?(?=[?#]|$)|linkedin\.com/in/(?P<member>[\w%-]{3,80}))",
    re.I,
)
_QUERY: Final = re.compile(r"[?&;](?P<key>[\w.\[\]%-]{1,48})=(?P<value>[^&#;\s]{2,512})")
_PERSONAL_KEY: Final = re.compile(
    r"(?:e?-?mail|user(?:name|_?id)?|login|(?:first|last|given|family|full|sur)?_?name|person|phone|tel|mobile|"
    r"msisdn|address|addr|street|dob|birth\w*|ssn|customer(?:_?(?:id|no))?|patient(?:_?id)?|employee(?:_?id)?|member(?:_?id)?|"
    r"q_name|recipient|to|from|owner|author)\Z",
    re.I,
)
_SECRET_KEY: Final = re.compile(
    r"(?:[\w-]*(?:token|secret|password|passwd|pwd|api_?key|apikey|access_?key|signature)|sig|key|auth|code|session(?:_?id)?|sid|jwt)\Z",
    re.I,
)
_SLUG: Final = re.compile(
    r"(?<=[/=_.])(?P<slug>[A-Za-z]{2,24}(?:(?:[-_+]|%20|\.(?!\w{2,5}(?:[?#&]|$)))[A-Za-z]{1,24}){1,3})(?=[/?#&.]|$)"
)
_NOT_ACCOUNTS: Final = frozenset(
    "login logout signup settings about terms help search explore features pricing topics orgs enterprise "
    "sponsors marketplace share intent home index public static assets me all new edit list in html json".split()
)


class UrlRecognizer:
    """User names and passwords, account segments, name slugs and personal query values of URLs."""

    name = "url"
    types = (URL, USERNAME, SECRET)
    whole_text = True

    def find(self, text: str) -> list[Span]:
        spans: list[Span] = []
        if "://" in text:
            for match in _URL.finditer(text):
                url = match.group().rstrip(".,;:!?)]*_")
                spans.extend(self._parts(match.start(), url))
        for profile in _BARE_PROFILE.finditer(text) if ".com/" in text or ".me/" in text else ():
            if _account_like(profile.group("user")):
                spans.append(Span(*profile.span("user"), USERNAME, 0.75, self.name))
        return spans

    def _parts(self, offset: int, url: str) -> Iterator[Span]:
        for kind, match, group, score in _matches(url):
            start, end = match.span(group)
            yield Span(offset + start, offset + end, kind, score, self.name)


def _matches(url: str) -> Iterator[tuple[str, re.Match[str], str, float]]:
    info = _USERINFO.search(url)
    if info is not None:
        password = info.group("password")
        if info.group("user") != "git" or password:
            yield USERNAME, info, "user", 0.9
        if password:
            yield SECRET, info, "password", 0.97
    for pattern in (_ACCOUNT, _SOCIAL):
        for match in pattern.finditer(url):
            group = match.lastgroup or "user"
            if _account_like(match.group(group)):
                yield USERNAME, match, group, 0.75
    for match in _QUERY.finditer(url):
        kind = _query_type(match.group("key"), match.group("value"))
        if kind is not None:
            yield kind, match, "value", 0.8
    for match in _SLUG.finditer(url, url.find("://") + 3):
        if _is_name(match.group("slug")):
            yield URL, match, "slug", 0.7


def _query_type(key: str, value: str) -> str | None:
    if (
        _PERSONAL_KEY.match(key)
        and len(value) >= 3
        and value.lower() not in ("true", "false", "null")
    ):
        return URL
    if _SECRET_KEY.match(key) and len(value) >= 8 and any(c.isdigit() for c in value):
        return SECRET
    return None


def _account_like(user: str) -> bool:
    return user.lower() not in _NOT_ACCOUNTS and not is_common_word(user) and not user.isdigit()


def _is_name(slug: str) -> bool:
    """Tell whether a slug is a given name and a family name: ``ilse-varga``."""
    words = [word.casefold() for word in re.split(r"[-_.+ ]", unquote_plus(slug)) if word]
    if len(words) < 2 or words[0] not in given_names() or is_common_word(words[0]):
        return False
    return words[-1] in family_names() and not is_common_word(words[-1])
