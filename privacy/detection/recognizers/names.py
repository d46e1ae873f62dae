"""What person recognizers share: word tokens of a text and what the name lists say of them."""

import re
from dataclasses import dataclass, field
from typing import Final

from privacy.detection.common_words import is_common_word
from privacy.detection.wordlists import family_names, given_names

# A word, with inner apostrophes and hyphens: O'Brien, Jean-Luc.
WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_BLANKS: Final = re.compile(r"[ \t\u00a0]{1,8}\Z")
# Name particles stay in lower case inside a name.
PARTICLES: Final = frozenset(
    "van von der den de del della di da dos das du la le ter ten bin ibn al el y zu zum".split()
)
# Words that follow a given name in prose far more often than they are a family name.
FUNCTION_WORDS: Final = frozenset(
    "a an and are as at be been but by can could did do does for from get go had has have he her him his how i if in is it its "
    "may me might must my no not of off on or our out said say see she should so than that the their them then there they this to "
    "too up us was we were what when where which while who why will with would you your about after also all any because before "
    "came come each even ever every first here into just like long made make many more most much now off one only other over same "
    "some such take tell time two use very want way well went work back good day new please ask call mail thanks".split()
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text with its evidence.

    Attributes:
        start: First code point.
        end: One past the last.
        text: The surface.
        fold: Casefolded surface.
        given: In the list of given names.
        family: In the list of family names.
        common: An everyday English word.
    """

    start: int
    end: int
    text: str = field(repr=False)
    fold: str
    given: bool
    family: bool
    common: bool

    @property
    def case(self) -> str:
        """ "upper", "title", "lower" or "mixed"; a single capital counts as title."""
        if self.text.islower():
            return "lower"
        if len(self.text) > 1 and self.text.isupper():
            return "upper"
        return "title" if self.text[0].isupper() else "mixed"


def make_word(text: str, start: int) -> Word:
    """Look up one surface."""
    fold = text.casefold()
    parts = fold.replace("’", "'").split("-")
    given = fold in given_names() or (len(parts) == 2 and all(p in given_names() for p in parts))
    family = (
        fold in family_names()
        or fold.replace("'", "").replace("’", "") in family_names()
        or (len(parts) == 2 and all(p in family_names() for p in parts))
    )
    return Word(start, start + len(text), text, fold, given, family, is_common_word(fold))


def blanks_between(text: str, left: int, right: int) -> bool:
    """Tell whether only blanks of one line stand between two offsets (at least one)."""
    return right - left <= 8 and bool(_BLANKS.match(text, left, right))


def initial_between(text: str, left: int, right: int) -> bool:
    """Tell whether blanks and one initial stand between two offsets: " M. "."""
    return right - left <= 8 and bool(
        re.fullmatch(r"[ \t]{1,3}[^\W\d_]\.?[ \t]{1,3}", text[left:right])
    )
