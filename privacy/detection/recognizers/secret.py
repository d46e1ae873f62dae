"""Credentials: keys of known services by prefix, private keys, and values assigned to a secret's name."""

import re
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.recognizers.support import group_span, looks_like_code
from privacy.types import SECRET, Span

# (substring that must be present, form). Prefixes are the ones the services document.
_KEYS: Final = tuple(
    (hint, re.compile(rf"(?<![A-Za-z0-9_]){form}(?![A-Za-z0-9_-])"))
    for hint, form in (
        ("sk-", r"sk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{16,200}"),
        ("AKIA", r"AKIA[0-9A-Z]{12,20}"),
        ("ASIA", r"ASIA[0-9A-Z]{16}"),
        ("gh", r"gh[pousr]_[A-Za-z0-9]{20,255}"),
        ("github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
        ("glpat-", r"glpat-[A-Za-z0-9_-]{20,64}"),
        ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,250}"),
        ("AIza", r"AIza[0-9A-Za-z_-]{35}"),
        ("ya29.", r"ya29\.[0-9A-Za-z_-]{20,500}"),
        ("hf_", r"hf_[A-Za-z0-9]{30,60}"),
        ("npm_", r"npm_[A-Za-z0-9]{36}"),
        ("pypi-", r"pypi-[A-Za-z0-9_-]{40,250}"),
        ("SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
        ("_live_", r"(?:sk|rk|pk)_live_[A-Za-z0-9]{16,128}"),
        ("_test_", r"(?:sk|rk)_test_[A-Za-z0-9]{16,128}"),
        ("AGE-SECRET", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
        ("eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
        ("hooks.slack.com", r"(?<=hooks\.slack\.com/services/)T[A-Z0-9/]{8,30}[A-Za-z0-9]{16,32}"),
    )
)
_PEM_BEGIN: Final = re.compile(r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----")

_NAMES: Final = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret(?:[_-]?(?:access[_-]?)?key)?|api[_ -]?(?:key|token|secret)|apikey|"
    r"(?:access|auth|refresh|bearer|session|id)[_ -]?(?:token|key)|token|client[_ -]?secret|private[_ -]?key|"
    r"account[_ -]?key|encryption[_ -]?key|signing[_ -]?key|credentials?|pin(?: code)?|kennwort|passwort|"
    r"mot de passe|contrase[ñn]a"
)
_ASSIGNED: Final = re.compile(
    rf"(?<![A-Za-z])(?P<name>(?:[A-Za-z0-9]{{1,24}}[_-]){{0,3}}(?:{_NAMES}))[\"']?"
    # "the password for the vault is ..."
    r"(?:\s(?:for|to|of|on)\s(?:[\w'’-]{1,24}\s){1,4}(?=is\b|was\b))?\s{0,3}"
    r"(?P<op>[:=]{1,2}>?|=>|\bis\b|\bwas\b|\bto\b)\s{0,3}(?P<quote>[\"'`]?)(?P<value>[^\s\"'`,;<>]{4,512})",
    re.I,
)
_ASSIGNED_HINTS: Final = (
    "pass", "pwd", "secret", "key", "token", "credential", "pin", "kennwort", "contrase",
)  # fmt: skip
_SCHEME: Final = re.compile(
    r"(?:\bBearer|\bauthorization:\s{0,3}(?:basic|token)|\bBasic)\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{16,4096}={0,2})",
    re.I,
)
_PLACEHOLDER: Final = re.compile(
    r"(?:none|null|nil|true|false|undefined|str(?:ing)?|int(?:eger)?|bytes|bool(?:ean)?|optional|any|text|object|"
    r"redacted|changeme|example|placeholder|your[_-].*|my[_-].*|x{3,}|\*{3,}|\.{3,}|todo|required|expired|invalid|"
    r"incorrect|wrong|missing|reset|hashed|encrypted|varchar.*|char.*|blob)[.!?)]*\Z|\$|%|\{|\*+\Z",
    re.I,
)
_STRONG_NAME: Final = re.compile(r"pass|pwd|secret|kennwort|contrase|credential", re.I)


class SecretRecognizer:
    """Keys, tokens, passwords and private key blocks."""

    name = "secret"
    types = (SECRET,)
    whole_text = True

    def find(self, text: str) -> list[Span]:
        spans = [
            Span(match.start(), match.end(), SECRET, 0.98, self.name)
            for hint, form in _KEYS
            if hint in text
            for match in form.finditer(text)
        ]
        if "PRIVATE KEY" in text:
            spans.extend(self._blocks(text))
        lower = text.casefold()
        if any(hint in lower for hint in _ASSIGNED_HINTS):
            spans.extend(self._assigned(text))
        if "bearer" in lower or "basic" in lower or "authorization" in lower:
            spans.extend(
                group_span(match, "value", SECRET, 0.93, self.name)
                for match in _SCHEME.finditer(text)
                if any(c.isdigit() or c.isupper() for c in match.group("value"))
            )
        return spans

    def _blocks(self, text: str) -> list[Span]:
        spans = []
        for begin in _PEM_BEGIN.finditer(text):
            footer = f"-----END {begin.group('kind')}-----"
            at = text.find(footer, begin.end())
            # Without a footer the key may go on to the end of what was pasted.
            end = len(text) if at < 0 else at + len(footer)
            spans.append(Span(begin.start(), end, SECRET, 0.99, self.name))
        return spans

    def _assigned(self, text: str) -> list[Span]:
        spans = []
        for match in _ASSIGNED.finditer(text):
            score = _judge(match)
            if score is not None:
                start, end = match.span("value")
                end -= len(match.group("value")) - len(match.group("value").rstrip(".)]}:"))
                if end - start >= 4:
                    spans.append(Span(start, end, SECRET, score, self.name))
        return spans


def _judge(match: re.Match[str]) -> float | None:
    """Score an assignment by its name, operator and value; None when it is code or prose."""
    value, quoted = match.group("value"), bool(match.group("quote"))
    if _PLACEHOLDER.match(value) or (not quoted and looks_like_code(value)):
        return None
    digits = sum(c.isdigit() for c in value)
    mixed = digits > 0 and digits < len(value)
    strong = bool(_STRONG_NAME.search(match.group("name")))
    if match.group("name").casefold().startswith("pin"):
        return 0.8 if value.rstrip(".,)").isdigit() and len(value.rstrip(".,)")) <= 8 else None
    if match.group("op").isalpha():
        # Prose: "the password is wrong" against "the password is Tr0ub4dor".
        if not value[0].isalnum():
            return None
        symbols = any(not c.isalnum() for c in value.rstrip(".,!?)"))
        return 0.85 if strong and (mixed or (symbols and not value[-1].isalpha())) else None
    if strong:
        plain_word = value.isalpha() and is_common_word(value) and not quoted
        return None if plain_word or _identifier(value, quoted) else 0.9
    # "token: 42" and "key: value" are everywhere; ask for length and a mix.
    return 0.85 if len(value) >= 12 and mixed and not _identifier(value, quoted) else None


def _identifier(value: str, quoted: bool) -> bool:
    """Tell whether an unquoted value is a name of code: ``args.password``, ``db_password``."""
    if quoted or any(c.isdigit() for c in value):
        return False
    return bool(
        re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)+|[a-z]+(?:_[a-z]+)+|[a-z]+(?:[A-Z][a-z]+)+", value)
    )
