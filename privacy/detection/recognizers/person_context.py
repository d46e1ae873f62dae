"""Names that their surroundings introduce: titles, signatures, greetings, labels, "my name is"."""

import re
from collections.abc import Iterator
from typing import Final

from privacy.detection.recognizers.names import FUNCTION_WORDS, PARTICLES, WORD, make_word
from privacy.detection.wordlists import family_names, given_names
from privacy.types import PERSON, Span

_TITLE: Final = re.compile(
    r"(?<![\w.])(?:Dr|Mr|Mrs|Ms|Mx|Prof|Professor|Doctor|Sir|Dame|Frau|Herrn?|Mme|Mlle|Madame|Monsieur|Se[ñn]or(?:a|ita)?|Sra?|"
    r"Don|Do[ñn]a|Judge|Justice|Captain|Capt|Lt|Lieutenant|Sgt|Sergeant|Col|Colonel|Gen|General|Rev|Reverend|Nurse|Hon|Signora?|Sig|"
    # Polish, Hungarian, Turkish, Dutch, Nordic, Czech, Romanian, Portuguese, Vietnamese forms of address.
    r"Pani|Panią|Pana|Panu|Panem|Panie|pani|panią|pana|panem|panu|Kedves|Tisztelt|Say[ıi]n|Bayan|Mevrouw|Mevr|Meneer|Dhr|"
    r"mevrouw|meneer|dhr|Fru|Fröken|Frøken|Paní|paní|Domnul|Doamna|Senhora?|senhora?|Dona|Dott(?:\.ssa)?|dott(?:\.ssa)?|"
    r"Avv|avv|sig(?:\.ra)?|Ông|Bà|Chị|Anh|"
    r"dr|mr|mrs|ms|prof|frau|herr|DR|MR|MRS|MS|PROF)\.?[ \t]{1,4}(?=[^\W\d_])"
)
_INTRODUCED: Final = re.compile(
    r"\b(?:signed(?: off)?(?: by)?|undersigned|my name is|(?:her|his|their) name is|name is|named|called|i am|i'm|i’m|this is|attn\.?|"
    r"c/o|on behalf of|sincerely|regards|best|cheers|thanks|love|dear|hi|hello|hey|salut|hallo|lieber?|cher|ch[èe]re|"
    r"patient|client|tenant|claimant|defendant|plaintiff|applicant|employee|employer|insured|holder|beneficiary|witness|author|"
    r"(?:full |first |last |given |family |sur)?name|from|to|cc|contact|manager|supervisor|nurse|customer|ask|tell|"
    r"met|with|by)(?P<sep>\s{0,2}[:,]\s{0,3}|[ \t]{1,3})(?=[^\W\d_])",
    re.I,
)
_SINGLE_OK: Final = re.compile(
    r"(?:my name is|name is|i am|i'm|i’m|dear|hi|hello|hey|sincerely|regards|best|cheers|signed(?: by)?|attn|lieber?|hallo)\W*\Z",
    re.I,
)
# Whatever else it looks like: "My name is Siobhán Park."
_SELF: Final = re.compile(r"(?:my|her|his) name is\W*\Z", re.I)
_LOWER_OK: Final = re.compile(
    r"(?:my name is|name is|named|signed(?: off)? by|dear|hi|hello|hey|i am|i'm|ask|tell|this is|from)\W*\Z",
    re.I,
)
# As in lists: "O'Sullivan (Fionnuala)".
_BRACKETED: Final = re.compile(
    r"(?<![\w.])(?P<family>[^\W\d_a-z][\w'’-]{1,30})[ \t]{1,2}\((?P<given>[^\W\d_a-z][\w'’-]{1,30})\)"
)
_INITIAL: Final = re.compile(r"[ \t]{1,3}[^\W\d_a-z]\.(?=[ \t])")
# Accounts and test data number their people: "User3 Varga3".
_NUMBER: Final = re.compile(r"\d{1,4}(?!\w)")
_NEXT: Final = re.compile(r"[ \t]{1,4}(?=[^\W\d_])")
_NO_NAME: Final = frozenset(
    "team all everyone support sir madam customer colleagues friends folks there sirs service department committee board "
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october november december "
    "english german french spanish american european".split()
)
_LIMIT: Final = 4


def _is_listed(match: re.Match[str]) -> bool:
    family = match.group("family").casefold().replace("’", "'")
    known = family_names()
    return (
        match.group("given").casefold() in given_names()
        or family in known
        or family.replace("'", "") in known
    )


class PersonContextRecognizer:
    """Up to four name words behind a title or an introduction."""

    name = "person.context"
    types = (PERSON,)

    def find(self, text: str) -> list[Span]:
        spans: list[Span] = []
        for match in _TITLE.finditer(text):
            spans.extend(self._after_title(text, match))
        for match in _INTRODUCED.finditer(text):
            spans.extend(self._introduced(text, match))
        for match in _BRACKETED.finditer(text):
            if _is_listed(match):
                spans += [Span(*match.span(g), PERSON, 0.6, self.name) for g in ("family", "given")]
        return spans

    def _after_title(self, text: str, match: re.Match[str]) -> Iterator[Span]:
        lower = match.group()[0].islower()
        end, count, known, _ = _name_at(text, match.end(), lower=False)
        if lower and count:
            known = True
        elif lower:
            end, count, known, _ = _name_at(text, match.end(), lower=True)
        if count and (known or not lower):
            yield Span(match.end(), end, PERSON, 0.85 if not lower else 0.75, self.name)

    def _introduced(self, text: str, match: re.Match[str]) -> Iterator[Span]:
        words = match.group()
        may_be_lower = bool(_LOWER_OK.search(words))
        end, count, known, common = _name_at(text, match.end(), lower=False)
        if count == 0 and may_be_lower:
            end, count, known, common = _name_at(text, match.end(), lower=True)
            if count >= 2 and known and not common:
                yield Span(match.end(), end, PERSON, 0.7, self.name)
            return
        if count >= 2 and _SELF.search(words):
            yield Span(match.end(), end, PERSON, 0.995, self.name)
        elif count >= 2 and known and not common:
            yield Span(match.end(), end, PERSON, 0.8, self.name)
        elif count >= 2 and not common and _SINGLE_OK.search(words):
            yield Span(match.end(), end, PERSON, 0.65, self.name)
        elif count == 1 and not common and _SINGLE_OK.search(words):
            yield Span(match.end(), end, PERSON, 0.7 if known else 0.6, self.name)


def _name_at(text: str, start: int, *, lower: bool) -> tuple[int, int, bool, bool]:
    """Read name words from ``start``.

    Returns:
        The end, how many words, whether a list knows one of them, and whether any is an everyday word.
    """
    end, count, known, common, position = start, 0, False, False, start
    while count < _LIMIT:
        match = WORD.match(text, position)
        if match is None:
            break
        word = make_word(match.group(), position)
        particle = word.fold in PARTICLES and word.text.islower()
        if not particle and not _may_be_name(
            word.text, word.fold, lower, word.given or word.family
        ):
            break
        tail = _NUMBER.match(text, match.end())
        stop = tail.end() if tail else match.end()
        next_gap = _INITIAL.match(text, stop)
        if not particle:
            # A lone everyday word is fine inside a name that has others ("Dr. Rose Varga").
            end, count = stop, count + 1
            known = known or ((word.given or word.family) and not word.common)
            common = common or word.common
        gap = _NEXT.match(text, next_gap.end() if next_gap else stop)
        if gap is None:
            break
        position = gap.end()
    return end, count, known, common and not known


def _may_be_name(surface: str, fold: str, lower: bool, listed: bool) -> bool:
    if fold in _NO_NAME:
        return False
    if lower:
        return surface.islower() and listed and fold not in FUNCTION_WORDS and len(fold) > 1
    return surface[0].isupper() and (fold not in FUNCTION_WORDS)
