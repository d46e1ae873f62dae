"""Organisations that their form gives away: a legal form, a trade word, "University of ..."."""

import re
from collections.abc import Iterator
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.types import ORG, Span

# Unmistakable behind a capital word.
_CLEAR: Final = (
    r"GmbH(?: & Co\.? KG(?:aA)?)?|gGmbH|mbH|KGaA|OHG|e\.V\.|e\.G\.|Inc\.?|LLC|L\.L\.C\.|Ltd\.?|Limited|PLC|plc|LLP|L\.L\.P\.|"
    r"Corp\.?|Corporation|Incorporated|S\.A\.S?\.?|S\.p\.A\.|SpA|S\.r\.l\.|Srl|SRL|SARL|S\.à r\.l\.|SAS|B\.V\.|N\.V\.|A/S|ApS|Oyj|"
    r"Kft\.?|Zrt\.?|Bt\.|Sp\. z o\.o\.|s\.r\.o\.|d\.o\.o\.|Pty\.? Ltd\.?|Pvt\.? Ltd\.?|Pte\.? Ltd\.?|K\.K\.|S\.L\.|Lda\.?|Ltda\.?|P\.C\.|N\.A\."
)
# Also words or units of something else; they ask for a capital word and the end of a phrase.
_UNCLEAR: Final = r"AG|SE|KG|SA|AB|AS|Oy|BV|NV|LP|UG|Co\.?|Company"
_FORM: Final = re.compile(rf"(?<=[\w.,)] )(?:(?P<clear>{_CLEAR})|(?P<unclear>{_UNCLEAR}))(?!\w)")
_TRADE: Final = re.compile(
    r"(?<=\w )(?:Supplies|Holdings?|Group|Bank|University|Hospital|Clinic|Foundation|Partners|Associates|Systems|Solutions|"
    r"Industries|Technologies|Consulting|Logistics|Pharmaceuticals?|Insurance|Institute|College|Academy|Ventures|Capital|"
    r"Enterprises|Laboratories|Labs|Motors|Airlines|Airways|Energy|Pharmacy|Bakery|Brewery|Studios?|"
    r"Securities|Trust|Society|Association|Federation|Union|Council|Agency|Authority|Ministry|Church|Chapel|Museum|School)\b(?!-)"
)
_OF: Final = re.compile(
    r"(?<!\w)(?:University|Bank|Institute|College|Ministry|Department|Church|Museum|School|Hospital) of (?:the )?"
    r"[^\W\d_a-z][\w'’-]*(?: (?:and |& )?[^\W\d_a-z][\w'’-]*){0,3}"
)
_BACK_WORD: Final = re.compile(
    r"(?:(?P<word>[^\W_](?:[\w'’.&+-]*[\w.])?)|(?P<amp>&)),?[ \t]{1,2}\Z"
)
_LINKS: Final = frozenset("of and & for the de la du des und y e von van der".split())
_STOP: Final = frozenset(
    "the a an our your their his her this that each every any my at in by from with for to of and or as is was if when "
    "no some all we they he she it i you dear".split()
)
# What may stand before "of" in a name; "Ilse Varga of Acme AG" is a person and a company.
_HEADS: Final = frozenset(
    "university bank institute college ministry department church museum school hospital society association "
    "federation union council agency authority board chamber house port academy foundation trust friends "
    "bureau office league order guild court state city".split()
)
_MAX_WORDS: Final = 6


class OrgFormRecognizer:
    """Capitalised words before a legal form or a trade word."""

    name = "org.form"
    types = (ORG,)

    def find(self, text: str) -> list[Span]:
        spans = list(self._behind(text))
        if " of " in text:
            spans.extend(Span(m.start(), m.end(), ORG, 0.6, self.name) for m in _OF.finditer(text))
        return spans

    def _behind(self, text: str) -> Iterator[Span]:
        for match in _FORM.finditer(text):
            start, words = _walk_back(text, match.start())
            if not words:
                continue
            if match.group("clear"):
                yield Span(start, match.end(), ORG, 0.92, self.name)
            elif any(not is_common_word(word) for word in words) and not words[-1].isdigit():
                yield Span(start, match.end(), ORG, 0.75, self.name)
        for match in _TRADE.finditer(text):
            start, words = _walk_back(text, match.start())
            telling = [word for word in words if word[0].isupper() and not is_common_word(word)]
            if telling:
                yield Span(start, match.end(), ORG, 0.65, self.name)


def _walk_back(text: str, start: int) -> tuple[int, list[str]]:
    """Collect the capitalised words that lead up to ``start``; links only between two of them."""
    words: list[str] = []
    kept, position, following = start, start, ""
    for _ in range(_MAX_WORDS):
        match = _BACK_WORD.search(text, max(0, position - 40), position)
        if match is None:
            break
        word = match.group("word") or "&"
        capital = word[0].isupper() or word[0].isdigit()
        if following == "of" and word.casefold() not in _HEADS:
            break
        following = word.casefold()
        if word.casefold() in _STOP and not (word == "&" or word.casefold() in _LINKS and words):
            break
        if not capital and word.casefold() not in _LINKS:
            break
        # A full stop ends the sentence before, unless it closes an initial.
        if word.endswith(".") and len(word) > 3:
            break
        # Years and numbers lead up to a name but do not belong to it: "Copyright 2006 Acme Group".
        if not any(c.isalpha() for c in word) and word != "&":
            break
        position = match.start()
        if capital and word.casefold() not in _STOP:
            kept = position
            words.insert(0, word)
    return kept, words
