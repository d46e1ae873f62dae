"""Names in scripts that have capitals but that the tagger was not trained on: Cyrillic, Greek, Armenian.

These languages write nouns small, so a capital in mid-sentence is a name; of two capitalised words in a row
at least one is.  That finds too much rather than too little: a place may be taken for a person.
"""

import re
from typing import Final

from privacy.detection.sentences import sentence_start
from privacy.types import PERSON, Span

_WORD: Final = r"[{upper}][{lower}'’]{{1,30}}(?:-[{upper}][{lower}'’]{{1,30}})?"
_SCRIPTS: Final = (
    ("\u0410-\u042f\u0401\u0404\u0406\u0407\u0408\u0490", "\u0430-\u045f\u0491"),
    ("\u0386-\u03ab", "\u03ac-\u03ce"),
    ("\u0531-\u0556", "\u0561-\u0587"),
)
_NAMES: Final = tuple(
    re.compile(rf"(?<!\w){word}(?:[ \t\u00a0]{{1,3}}(?:{word}|[{upper}]\.)){{0,3}}(?!\w)")
    for upper, lower in _SCRIPTS
    for word in (_WORD.format(upper=upper, lower=lower),)
)


class PersonScriptRecognizer:
    """One capitalised word in mid-sentence, or up to four in a row."""

    name = "person.script"
    types = (PERSON,)

    def find(self, text: str) -> list[Span]:
        if text.isascii():
            return []
        return [
            Span(match.start(), match.end(), PERSON, 0.55, self.name)
            for pattern in _NAMES
            for match in pattern.finditer(text)
            if " " in match.group() or not sentence_start(text, match.start())
        ]
