"""Account names: @handles, labelled user names and home directories."""

import re
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.recognizers.support import group_span, looks_like_code
from privacy.types import USERNAME, Span

_HANDLE: Final = re.compile(
    r"(?<![\w@./+`>-])@(?P<handle>[A-Za-z_][\w]{0,30}(?:[.-]\w{1,30}){0,3})(?![\w/(@`]|\.\w)"
)
_LABELLED: Final = re.compile(
    r"\b(?:user ?name|user[_-]name|user|login|handle|screen name|account name|userid|user[_ -]id|uid|nick(?:name)?|skype|discord)"
    r"(?:\s+(?P<is>is)\s+|[\"']?\s{0,2}[:=]\s{0,2})(?P<quote>[\"'`]?)(?P<user>[A-Za-z0-9_][\w.-]{2,40})(?![\w(\[@-]|\.\w)",
    re.I,
)
# A field of a log line: "user=hkim ip=..."; in code a comma or a bracket would follow.
_LOG_FIELD: Final = re.compile(r"(?<![^\s])(?:user|uid|login)=[A-Za-z][\w.-]*(?:\s|\Z)", re.I)
_HOME: Final = re.compile(
    r"(?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})(?P<user>[A-Za-z][\w.-]{1,31})"
)
_LINE_START: Final = re.compile(r"(?:^|\n)[ \t]*\Z")
_ANNOTATIONS: Final = frozenset(
    "property staticmethod classmethod abstractmethod override param params return returns throws deprecated "
    "dataclass pytest app router media import keyframes font-face supports charset layer container property "
    "test before after autowired component service nullable see since author version todo type typedef "
    "types example default private public protected internal suppresswarnings entity id column latest everyone "
    "here channel all cache functools lru_cache wraps overload final contextmanager inject given settings".split()
)
_SYSTEM: Final = frozenset(
    "root admin administrator ubuntu debian runner app user users public default shared node vscode ec2-user "
    "jenkins docker postgres mysql www-data nobody guest none null true false str string self current_user "
    "username anonymous system test unknown int all any me name id".split()
)


class UsernameRecognizer:
    """Names of accounts, where their place says that they are names of accounts."""

    name = "username"
    types = (USERNAME,)

    def find(self, text: str) -> list[Span]:
        spans = self._handles(text) if "@" in text else []
        for match in _LABELLED.finditer(text):
            if _labelled(match):
                spans.append(group_span(match, "user", USERNAME, 0.75, self.name))
        for match in _HOME.finditer(text):
            user = match.group("user")
            if user.lower() not in _SYSTEM:
                spans.append(group_span(match, "user", USERNAME, 0.8, self.name))
        return spans

    def _handles(self, text: str) -> list[Span]:
        spans = []
        for match in _HANDLE.finditer(text):
            handle = match.group("handle").lower()
            if handle in _ANNOTATIONS or handle.split(".")[0] in _ANNOTATIONS or len(handle) < 3:
                continue
            # A line that holds an annotation only is code; "@ilsev can you look" is not.
            alone = (
                _LINE_START.search(text, 0, match.start())
                if match.start() < 200
                else (_LINE_START.search(text, match.start() - 200, match.start()))
            )
            if alone and text[match.end() : match.end() + 1] in ("", "\n", "\r") and "\n" in text:
                continue
            if text[match.end() : match.end() + 1] == "/":
                continue
            spans.append(Span(match.start("handle"), match.end("handle"), USERNAME, 0.7, self.name))
        return spans


def _labelled(match: re.Match[str]) -> bool:
    user = match.group("user").rstrip(".-")
    # user_id = u.id is an attribute, not an account.
    if (
        "=" in match.group()
        and not match.group("quote")
        and re.fullmatch(r"[a-z]{1,2}\.(?:[a-z_]+_)?id", user)
    ):
        return False
    telling = any(c.isdigit() or c in "._-" for c in user) or bool(match.group("quote"))
    if user.lower() in _SYSTEM or is_common_word(user) or looks_like_code(user) or user.isdigit():
        return False
    if re.match(
        r"(?:current|get|request|req|self|auth|session|config|new|this|row|data|event|user)[._]",
        user,
        re.I,
    ):
        return False
    if _LOG_FIELD.match(match.string, match.start(), match.end() + 1):
        return True
    return (
        telling
        or match.group("is") is None
        and match.group().lower().startswith(("username", "login", "handle"))
    )
