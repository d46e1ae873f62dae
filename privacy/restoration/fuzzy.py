"""Substitutes that come back misspelt or inflected.

A word is taken for a damaged substitute only when all of this holds; see docs/restoration.md for
the reasons and examples:

* it is capitalised (or all capitals) and has at least ``MIN_LENGTH`` letters;
* it begins with the substitute's first letter, diacritics aside;
* it is no common word, stood in no text that went out, and is neither an original of the session
  nor another substitute;
* exactly one substitute of the session is close: equal but for diacritics, or an inflected form of
  it, or one inner edit away.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from rapidfuzz.distance import OSA

from privacy.restoration.forms import Pair

MIN_LENGTH: Final = 5
# From this length on any single inner edit counts; shorter names have too many neighbours.
FREE_EDIT_LENGTH: Final = 7

TOKEN: Final = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*")
_WORDS: Final = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f'’])*")
# Letters that no decomposition turns into ASCII.
_PLAIN: Final = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
_VOWELS: Final = frozenset("aeiouy")
# Endings by which languages inflect a name: plural and genitive everywhere, for family names also
# the Slavic and Hungarian cases and feminine forms.
_GIVEN_ENDINGS: Final = frozenset({"s"})
_FAMILY_ENDINGS: Final = frozenset(
    "s es a u i y e em om ou ovi ova ove ovou owi owa owie iem ego emu"
    " nak nek nal nel ra re".split()
)
# Endings that take the place of a final vowel ("Varga", "Vargou").
_STEM_ENDINGS: Final = frozenset("y u o e i ou ovi ova ove ovou owi".split())
_LONGEST_ENDING: Final = 4
_UNKNOWN: Final = "\x00"
# Letters that sound alike, so that one is written for the other.
_ALIKE: Final = frozenset(
    frozenset(pair) for pair in ("ck", "iy", "sz", "vw", "dt", "bp", "jy", "ij", "kq", "fv", "oa")
)

# A word that touches one of these is part of an address, a path, a tag, code or a compound.
LEFT_BLOCKS: Final = frozenset("@/\\.-#&=$%+~<`\u2010\u2011")
RIGHT_BLOCKS: Final = frozenset("@/\\-#&=$%+~>`(\u2010\u2011")


@lru_cache(maxsize=4096)
def fold(word: str) -> str:
    """Return ``word`` in lower case without diacritics; prefixes fold to prefixes."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    base = "".join(c for c in decomposed if not unicodedata.combining(c))
    return base.translate(_PLAIN)


def words_of(text: str) -> set[str]:
    """Return the words of ``text`` that the search for damaged substitutes could ever touch."""
    words = (token.group() for token in TOKEN.finditer(text))
    return {word for word in words if len(word) >= MIN_LENGTH and _shape_ok(word)}


class Protected:
    """The words of texts that went out, gathered when they are first asked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts
        self._words: set[str] | None = None

    def __contains__(self, word: str) -> bool:
        if self._words is None:
            self._words = {w.casefold() for text in self._texts for w in words_of(text)}
        return word.casefold() in self._words


def _shape_ok(word: str) -> bool:
    """Capitalised or all capitals; true of every prefix of such a word."""
    return word[0].isupper() and (word[1:] == word[1:].lower() or word == word.upper())


def _one_inner_edit(word: str, target: str) -> bool:
    """Say whether one edit inside, first and last letter apart, makes one of the other."""
    if word[-1] != target[-1] or OSA.distance(word, target, score_cutoff=1) != 1:
        return False
    if min(len(word), len(target)) >= FREE_EDIT_LENGTH:
        return True
    shared = zip(word, target, strict=False)
    at = next((i for i, (a, b) in enumerate(shared) if a != b), min(len(word), len(target)))
    if len(word) == len(target):
        if word[at + 1 :] == target[at + 1 :]:
            return frozenset((word[at], target[at])) in _ALIKE
        return at + 2 < len(word)
    longer = word if len(word) > len(target) else target
    extra, before = longer[at], longer[at - 1]
    return extra in ("h", before) or (extra == "e" and before in "aou")


class _Target:
    __slots__ = ("endings", "folded", "originals")

    def __init__(self, folded: str) -> None:
        self.folded = folded
        self.originals: set[str] = set()
        self.endings: set[str] = set()

    def ending_of(self, word: str) -> str | None:
        """Return what is appended to the target, perhaps '', or None when not close."""
        if word == self.folded:
            return ""
        rest = word[len(self.folded) :]
        if word.startswith(self.folded) and rest in self.endings:
            return rest
        stem = self.folded[:-1]
        if self.folded[-1] in "aoe" and len(self.endings) > 1 and word.startswith(stem):
            if word[len(stem) :] in _STEM_ENDINGS:
                return ""
        return "" if _one_inner_edit(word, self.folded) else None

    def may_become(self, prefix: str) -> bool:
        """Say whether a word beginning with ``prefix`` may be close; errs on the side of yes."""
        size = len(prefix)
        if size > len(self.folded) + _LONGEST_ENDING:
            return False
        stem = self.folded[:-1]
        for base, endings in ((self.folded, self.endings), (stem, _STEM_ENDINGS)):
            rest = prefix[len(base) :]
            if prefix.startswith(base) and any(ending.startswith(rest) for ending in endings):
                return True
        for cut in (size - 1, size, size + 1):
            if OSA.distance(prefix, self.folded[:cut], score_cutoff=1) <= 1:
                return True
        return False


def _ends_in_vowel(word: str) -> bool:
    return fold(word)[-1:] in _VOWELS


class FuzzyWords:
    """Finds the original of a damaged substitute.

    Args:
        pairs: The session's pairs.
        common_word: Says whether a word exists on its own; such a word is never touched.
    """

    _MEMORY = 4096

    def __init__(
        self,
        pairs: Iterable[Pair],
        common_word: Callable[[str], bool],
    ) -> None:
        self._common_word = common_word
        self._kept: set[str] = set()
        self._originals: set[str] = set()
        self._buckets: dict[str, dict[str, _Target]] = {}
        self._known: dict[str, str | None] = {}
        # A letter of a word may be written with marks of its own; no word is longer than this.
        self._longest = 0
        for pair in pairs:
            if pair.kind in ("exact", "placeholder"):
                continue
            self._originals.update(fold(word) for word in _WORDS.findall(pair.original))
            self._kept.update(word.casefold() for word in _WORDS.findall(pair.substitute))
            if pair.kind not in ("mention", "initialled"):
                self._add_target(pair)

    def _add_target(self, pair: Pair) -> None:
        folded = fold(pair.substitute)
        if len(folded) < MIN_LENGTH or not TOKEN.fullmatch(pair.substitute):
            return
        bucket = self._buckets.setdefault(folded[0], {})
        target = bucket.setdefault(folded, _Target(folded))
        target.originals.add(pair.original)
        self._longest = max(self._longest, 3 * (len(folded) + _LONGEST_ENDING))
        target.endings |= _GIVEN_ENDINGS if pair.kind == "given" else _FAMILY_ENDINGS

    def __bool__(self) -> bool:
        return bool(self._buckets)

    def may_become(self, prefix: str) -> bool:
        """Say whether an unfinished word may still turn out to be a damaged substitute."""
        if len(prefix) > self._longest or not _shape_ok(prefix):
            return False
        folded = fold(prefix)
        bucket = self._buckets.get(folded[:1], {})
        return any(target.may_become(folded) for target in bucket.values())

    def restored(self, word: str) -> str | None:
        """Return what stands for a complete word, or None when it is to be left alone."""
        if not MIN_LENGTH <= len(word) <= self._longest or not _shape_ok(word):
            return None
        # One look-up, because another thread may empty the memory at any time.
        found = self._known.get(word, _UNKNOWN)
        if found is _UNKNOWN:
            found = self._find(word)
            if len(self._known) >= self._MEMORY:
                self._known.clear()
            self._known[word] = found
        return found

    def _find(self, word: str) -> str | None:
        folded = fold(word)
        bucket = self._buckets.get(folded[:1])
        if not bucket or len(folded) < MIN_LENGTH:
            return None
        close = [(t, e) for t in bucket.values() if (e := t.ending_of(folded)) is not None]
        if len(close) != 1 or len(close[0][0].originals) != 1:
            return None
        if word.casefold() in self._kept or folded in self._originals or self._common_word(word):
            return None
        target, ending = close[0]
        (original,) = target.originals
        return _inflected(word, original, ending)


def _inflected(word: str, original: str, ending: str) -> str:
    """Give ``original`` the case and the ending of ``word``, unless the ending cannot follow."""
    base = original.upper() if word.isupper() else original
    if not ending:
        return base
    clash = _ends_in_vowel(base) if ending[0] in _VOWELS else fold(base)[-1:] in "sxz"
    written = unicodedata.normalize("NFC", word)[-len(ending) :]
    return base if clash or fold(written) != ending else base + written
