"""Restoration of whole texts and of parsed JSON (DESIGN section 4)."""

import json
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from privacy.detection.common_words import is_common_word
from privacy.restoration.forms import Pair, build_table
from privacy.restoration.fuzzy import FuzzyWords, Protected
from privacy.restoration.scanner import Scanner
from privacy.restoration.stream import JsonStream, StreamRestorer, TextStream


class Restorer:
    """Puts the originals of one session back.  Immutable after construction and thread-safe.

    Args:
        pairs: The session's pairs.  A form that leads to two different originals is dropped.
        fuzzy: Whether misspelt and inflected substitutes are restored too.
        common_word: Says whether a word is an everyday word.  Of a substitute that is one only the
            written form counts, and the search for damaged substitutes never touches one.  Default:
            the project's list of common words.
        real_name: Says whether a word is a name by itself; that search never touches one either.
    """

    def __init__(
        self,
        pairs: Iterable[Pair],
        *,
        fuzzy: bool = True,
        common_word: Callable[[str], bool] = is_common_word,
        real_name: Callable[[str], bool] = lambda _: False,
    ) -> None:
        pairs = tuple(pairs)
        common = {
            pair.substitute
            for pair in pairs
            if pair.kind in ("given", "family", "whole") and common_word(pair.substitute)
        }
        words = FuzzyWords(pairs, lambda w: common_word(w) or real_name(w)) if fuzzy else None
        self._scanner = Scanner(build_table(pairs, common), words)

    def protecting(self, texts: Iterable[str]) -> "Restorer":
        """Return the restorer of one answer: what stood in ``texts``, which went out, is not damaged.

        It shares everything with this one, so it costs nothing to make.
        """
        restorer = copy(self)
        restorer._scanner = self._scanner.protecting(Protected(texts))
        return restorer

    def restore(self, text: str) -> str:
        """Return ``text`` with every substitute replaced by its original, in one pass."""
        pieces: list[str] = []
        at = 0
        for match in self._scanner.scan(text, 0, final=True).matches:
            pieces += (text[at : match.start], match.original)
            at = match.end
        if not pieces:
            return text
        pieces.append(text[at:])
        return "".join(pieces)

    def restore_json_text(self, text: str, *, certain: bool = True) -> str:
        """Return JSON text with the originals escaped where they stand; its layout is kept.

        Args:
            text: A JSON document; anything else is restored as far as that can be done.
            certain: False for text that may also be plain, which its first characters decide.
        """
        stream = JsonStream(self._scanner, certain)
        return stream.feed(text) + stream.finish()

    def restore_json(self, value: Any) -> Any:
        """Return a copy of a parsed JSON value with keys, strings and integers restored.

        Types are kept: an integer is replaced only by an integer.  A string that holds a JSON
        document is restored inside the strings of that document.  A key is left as it is when the
        restored one is there already.
        """
        if isinstance(value, str):
            return self._leaf(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.restore_json(item) for item in value]
        if isinstance(value, int) and not isinstance(value, bool):
            text = str(value)
            restored = self.restore_json_text(text)
            return value if restored == text else json.loads(restored)
        return value

    def stream(self, json_escaped: bool = False, *, certain: bool = True) -> StreamRestorer:
        """Return the restorer of one stream; ``json_escaped`` when its text is a JSON document.

        Args:
            certain: False when it may also be plain text, which its first characters decide.
        """
        if json_escaped:
            return JsonStream(self._scanner, certain)
        return TextStream(self._scanner)

    def _leaf(self, text: str) -> str:
        if text.lstrip(" \t\n\r")[:1] in ("[", "{"):
            return self.restore_json_text(text, certain=False)
        return self.restore(text)

    def _object(self, value: dict[Any, Any]) -> dict[Any, Any]:
        restored: dict[Any, Any] = {}
        for key, item in value.items():
            new = self._leaf(key) if isinstance(key, str) else key
            if new != key and (new in value or new in restored):
                new = key
            restored[new] = self.restore_json(item)
        return restored
