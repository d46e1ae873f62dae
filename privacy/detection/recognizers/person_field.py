"""Names that a field's own name introduces: JSON, YAML, SQL, XML, code, tables.

``"last_name": "Park"`` says of an everyday word what no sentence around it does.
"""

import re
from typing import Final

from privacy.detection.recognizers.names import WORD, make_word
from privacy.types import PERSON, Span

_WHO: Final = (
    r"first|last|given|family|middle|fore|sur|maiden|birth|full|legal|preferred|nick|patient|customer|client|"
    r"employee|owner|author|contact|holder|beneficiary|guest|tenant|manager|doctor|physician|sender|recipient|"
    r"spouse|mother|father|guardian|student|teacher|applicant|claimant|member|person|passenger|payee|signatory"
)
_OTHER_LANGUAGES: Final = (
    r"vorname|nachname|familienname|geburtsname|pr[ée]nom|nom_de_famille|apellidos?|cognome|sobrenome|"
    r"voornaam|achternaam|f[öo]rnamn|efternamn|fornavn|etternavn|efternavn|imi[eę]|nazwisko|soyad[ıi]|"
    r"vezet[ée]kn[ée]v|keresztn[ée]v|jm[ée]no|p[řr][íi]jmen[íi]|etunimi|sukunimi"
)
_SURE: Final = rf"(?:(?:{_WHO})[ _-]?names?|[fl]name|surname|{_OTHER_LANGUAGES})"
# Of these the value has to be a listed name: "first: Monday", "family: Roboto".
_LIKELY: Final = r"first|last|middle|given|family"
_KEY: Final = (
    rf"(?<![A-Za-z0-9])(?:(?P<sure>{_SURE}|[a-z]{{2,12}}(?-i:(?:First|Last|Given|Family|Middle|Full|Sur)[Nn]ame))"
    rf"|(?P<likely>{_LIKELY}))"
)
_ROLES: Final = (
    r"name|patient|customer|client|employee|owner|author|assignee|reviewer|contact|manager|doctor|nurse|student|"
    r"teacher|tenant"
)
_LABEL: Final = re.compile(rf"(?:[a-z0-9]{{1,20}}[ _.-]){{0,2}}{_KEY}|{_ROLES}", re.I)
# In each label that `key_kind` knows: what has none of these has no such label.
PART_OF_LABEL: Final = re.compile(rf"{_ROLES}|{_LIKELY}|{_OTHER_LANGUAGES}", re.I)
_WORDS: Final = r"[^\W\d_][\w'’.\-]{0,30}(?:[ ,]{1,2}[^\W\d_][\w'’.\-]{0,30}){0,4}"
_QUOTED: Final = re.compile(
    rf"{_KEY}(?:\\?[\"'`]\]?)?\s{{0,3}}(?:[:=]{{1,2}}>?|!=|<>|\bi?like\b|\bis\b)\s{{0,3}}"
    rf"(?P<quote>\\?[\"'`])(?P<value>{_WORDS})(?:%)?(?P=quote)",
    re.I,
)
_ELEMENT: Final = re.compile(
    rf"<(?:\w{{1,20}}:)?{_KEY}\s*>\s{{0,8}}(?P<value>{_WORDS})\s{{0,8}}</", re.I
)
_PLAIN: Final = re.compile(
    rf"{_KEY}\*{{0,2}}[ \t]{{0,2}}(?:[:=]\*{{0,2}}|\bis\b)[ \t]{{0,3}}"
    r"(?P<value>(?:(?:van|von|de|del|della|di|da|der|la|le|bin|al)[ \t]){0,2}[^\W\d_][\w'’\-]{1,30}(?:[ \t](?-i:[^\W\d_a-z])[\w'’\-]{1,30}){0,2})"
    r"(?=[ \t]*(?:[,;|&)\]}<]|[\r\n])|\.?(?:\s|\Z))",
    re.I,
)
_NO_VALUE: Final = frozenset(
    "null none nil undefined unknown true false string str text varchar char required optional any number int name "
    "first last middle given family surname forename self value input not is and or yes no redacted anonymous".split()
)


class PersonFieldRecognizer:
    """Values of fields such as ``last_name``, quoted, between tags or behind a colon."""

    name = "person.field"
    types = (PERSON,)

    def find(self, text: str) -> list[Span]:
        spans = []
        for pattern in (_QUOTED, _ELEMENT, _PLAIN):
            for match in pattern.finditer(text):
                if _is_name(match, plain=pattern is _PLAIN):
                    spans.append(Span(*match.span("value"), PERSON, 0.92, self.name))
        return spans


def _is_name(match: re.Match[str], *, plain: bool) -> bool:
    value = match.group("value")
    if not may_be_value(value, sure=match.group("sure") is not None):
        return False
    # Unquoted and in lower case it may be a variable: "last_name = surname".
    return not plain or value[0].isupper() or may_be_value(value, sure=False)


def may_be_value(value: str, *, sure: bool) -> bool:
    """Tell whether a field's value can be a person's name.

    Args:
        value: The value without its quotation marks.
        sure: Whether the field's name alone says so; else a listed word has to be in it.
    """
    words = [make_word(m.group(), m.start()) for m in WORD.finditer(value)]
    if not words or any(word.fold in _NO_VALUE for word in words):
        return False
    return sure or any((w.given or w.family) and not w.common for w in words)


def key_kind(label: str) -> str:
    """Return "sure" or "likely" for the label of a field that holds a person's name, else nothing."""
    match = _LABEL.fullmatch(label.strip())
    return "" if match is None else "sure" if match.group("sure") else "likely"
