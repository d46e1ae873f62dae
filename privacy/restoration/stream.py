"""Restoration of a response that arrives in pieces.

For every chunking the pieces returned by `feed` and `finish` concatenate to what restoring the
whole text gives: both run the same scan, and the stream emits only what no continuation can change.
"""

import re
from typing import Final

from privacy.restoration.borders import LOOK_BEHIND
from privacy.restoration.json_cells import Cells, JsonLexer, escaped
from privacy.restoration.scanner import Match, Scanner

_INTEGER: Final = re.compile(r"(?:0|[1-9][0-9]*)\Z")
_NUMBER_PARTS: Final = "+-.eE"
_LITERALS: Final = frozenset({"true", "false", "null"})


class StreamRestorer:
    """Restores one stream, once: one choice of a reply, or the arguments of one tool call."""

    def __init__(self) -> None:
        self._finished = False

    def feed(self, chunk: str) -> str:
        """Take the next piece (any size, also empty); return what is decided, perhaps ''.

        Raises:
            RuntimeError: When the stream is finished.
        """
        if self._finished:
            raise RuntimeError("this stream is finished: use a new StreamRestorer for the next one")
        return self._push(chunk, final=False)

    def finish(self) -> str:
        """Return what was held back; a second call returns ''."""
        if self._finished:
            return ""
        self._finished = True
        return self._push("", final=True)

    def _push(self, chunk: str, final: bool) -> str:
        raise NotImplementedError


class TextStream(StreamRestorer):
    """A stream of plain text."""

    def __init__(self, scanner: Scanner) -> None:
        super().__init__()
        self._scanner = scanner
        # `_begin` characters of decided text as left context, then what is held back.
        self._text = ""
        self._begin = 0

    def _push(self, chunk: str, final: bool) -> str:
        text = self._text + chunk
        scan = self._scanner.scan(text, self._begin, final)
        pieces: list[str] = []
        at = self._begin
        for match in scan.matches:
            pieces += (text[at : match.start], match.original)
            at = match.end
        pieces.append(text[at : scan.stop])
        keep = max(0, scan.stop - LOOK_BEHIND)
        self._text = text[keep:]
        self._begin = scan.stop - keep
        return "".join(pieces)


class JsonStream(StreamRestorer):
    """A stream of JSON text: originals are escaped for the place where they are inserted.

    Args:
        scanner: The scan of the session.
        certain: False when the text may also be plain (the content of a JSON string).
    """

    def __init__(self, scanner: Scanner, certain: bool = True) -> None:
        super().__init__()
        self._scanner = scanner
        self._cells = Cells()
        self._lexer = JsonLexer(self._cells, certain=certain)
        self._begin = 0

    def _push(self, chunk: str, final: bool) -> str:
        for char in chunk:
            self._lexer.feed(char, char)
        if final:
            self._lexer.finish()
        cells = self._cells
        scan = self._scanner.scan("".join(cells.chars), self._begin, final, self._accept)
        pieces: list[str] = []
        at = self._begin
        for match in scan.matches:
            pieces += cells.raws[at : match.start]
            pieces.append(escaped(match.original, cells.depths[match.start]))
            at = match.end
        pieces += cells.raws[at : scan.stop]
        keep = max(0, scan.stop - LOOK_BEHIND)
        cells.drop(keep)
        self._begin = scan.stop - keep
        return "".join(pieces)

    def _accept(self, text: str, match: Match, final: bool) -> bool | None:
        """Between strings replace a whole integer by a whole integer, and no literal."""
        if not self._cells.outside[match.start]:
            return True
        matched = text[match.start : match.end]
        if matched in _LITERALS:
            return False
        if not matched.isdigit():
            # No JSON document has such text outside its strings, so nothing valid can break.
            return True
        if match.start > 0 and text[match.start - 1] in _NUMBER_PARTS:
            return False
        if match.end == len(text):
            if not final:
                return None
        elif text[match.end] in _NUMBER_PARTS:
            return False
        return _INTEGER.match(match.original) is not None
