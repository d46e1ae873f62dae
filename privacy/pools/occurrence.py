"""Finds which of many names stand in a text as whole words."""

import re
from collections.abc import Sequence
from typing import Final

from privacy.embedding.base import fold

_WORD: Final = re.compile(r"[^\W_]+")


class NameFinder:
    """Finds names in texts by their folded words; time grows with the text, not with the names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for index, name in enumerate(names):
            words = tuple(_WORD.findall(fold(name)))
            if words:
                self._by_first.setdefault(words[0], []).append((words, index))

    def find(self, text: str) -> frozenset[int]:
        """Return the indices of the names whose words stand in ``text`` in a row, in any case.

        What lies between two words (blanks, hyphens, line breaks) is ignored, so this finds
        rather too much than too little.
        """
        words = _WORD.findall(fold(text))
        found: set[int] = set()
        for place, word in enumerate(words):
            for wanted, index in self._by_first.get(word, ()):
                if tuple(words[place : place + len(wanted)]) == wanted:
                    found.add(index)
        return frozenset(found)
