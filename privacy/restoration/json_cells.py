"""JSON text as cells: what a reader of the strings sees, and what stands in the document for it.

Tool-call arguments arrive as pieces of a JSON document.  The substitutes stand inside its string
literals, perhaps with escapes (``\\u00e1``, ``\\n``), and a string may hold a JSON document of its
own (``"{\\"to\\": ...}"``), whose strings are escaped twice.  `JsonLexer` turns the raw characters
into cells of one logical character each; matching runs over the logical characters and what is not
replaced is emitted raw, byte for byte.  The grammar is RFC 8259, section 7.
"""

import json
from dataclasses import dataclass, field
from typing import Final

# Stands for a string delimiter and for whatever no form may run across.
BOUNDARY: Final = "\x00"

_BLANKS: Final = " \t\n\r"
_SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_UNICODE_ESCAPE_LENGTH: Final = 6  # backslash, u, four hex digits

_MAYBE, _JSON, _PLAIN = range(3)


def escaped(text: str, depth: int) -> str:
    """Escape ``text`` for a place inside ``depth`` nested JSON string literals."""
    for _ in range(depth):
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    return text


@dataclass(slots=True)
class Cells:
    """Parallel lists, one entry a logical character.

    Attributes:
        chars: The logical characters.
        raws: The raw text of each.
        depths: In how many string literals each stands.
        outside: Whether it stands between strings, as a number or a literal does.
    """

    chars: list[str] = field(repr=False, default_factory=list)
    raws: list[str] = field(repr=False, default_factory=list)
    depths: list[int] = field(default_factory=list)
    outside: list[bool] = field(default_factory=list)

    def add(self, char: str, raw: str, depth: int, outside: bool) -> None:
        self.chars.append(char)
        self.raws.append(raw)
        self.depths.append(depth)
        self.outside.append(outside)

    def drop(self, count: int) -> None:
        """Forget the first ``count`` cells."""
        for cells in (self.chars, self.raws, self.depths, self.outside):
            del cells[:count]


class JsonLexer:
    """Lexes one level of JSON; the content of its strings goes to a lexer one level deeper.

    Args:
        cells: Where the cells go.
        depth: In how many string literals this level's text stands.
        certain: True for a JSON document; False for text that may be one, which is decided by its
            first characters: brackets and braces, then a quotation mark.  After the bracket that
            closes the first one the rest is plain text again.
    """

    def __init__(self, cells: Cells, depth: int = 0, certain: bool = True) -> None:
        self._cells = cells
        self._depth = depth
        self._certain = certain
        self._state = _JSON if certain else _MAYBE
        self._nesting = 0
        self._inner: JsonLexer | None = None
        self._escape = ""
        self._escape_raw = ""
        self._high = ""
        self._high_raw = ""

    def feed(self, char: str, raw: str) -> None:
        """Take one character of this level's text with the raw text it came from."""
        if self._inner is not None:
            self._in_string(self._inner, char, raw)
        elif self._state == _PLAIN:
            self._cells.add(char, raw, self._depth, False)
        elif char == '"' and (self._state == _JSON or self._nesting > 0):
            self._state = _JSON
            self._inner = JsonLexer(self._cells, self._depth + 1, certain=False)
            self._cells.add(BOUNDARY, raw, self._depth, True)
        else:
            self._between(char, raw)

    def finish(self) -> None:
        """Turn what is left of an unfinished escape into cells that nothing matches."""
        if self._inner is not None:
            self._release(self._inner)
            self._inner.finish()
            if self._escape_raw:
                self._cells.add(BOUNDARY, self._escape_raw, self._depth + 1, False)
                self._escape = self._escape_raw = ""

    def _between(self, char: str, raw: str) -> None:
        if char in "[{":
            self._nesting += 1
        elif char in "]}":
            self._nesting -= 1
        if self._state == _MAYBE and char not in _BLANKS and char not in "[{":
            self._state = _PLAIN
        self._cells.add(char, raw, self._depth, self._state != _PLAIN)
        if self._state == _JSON and not self._certain and self._nesting <= 0:
            self._state = _PLAIN

    def _in_string(self, inner: "JsonLexer", char: str, raw: str) -> None:
        if self._escape:
            self._escape += char
            self._escape_raw += raw
            self._end_of_escape(inner)
        elif char == "\\":
            self._escape, self._escape_raw = char, raw
        elif char == '"':
            self._release(inner)
            inner.finish()
            self._inner = None
            self._cells.add(BOUNDARY, raw, self._depth, True)
        else:
            self._release(inner)
            inner.feed(char, raw)

    def _end_of_escape(self, inner: "JsonLexer") -> None:
        """Pass an escape on to the inner level once it is complete."""
        escape, raw = self._escape, self._escape_raw
        if escape[1] != "u":
            self._escape = self._escape_raw = ""
            self._release(inner)
            inner.feed(_SIMPLE.get(escape[1], escape[1]), raw)
            return
        broken = len(escape) > 2 and escape[-1] not in "0123456789abcdefABCDEF"
        if not broken and len(escape) < _UNICODE_ESCAPE_LENGTH:
            return
        self._escape = self._escape_raw = ""
        if broken:
            self._release(inner)
            inner.feed(BOUNDARY, raw)
        else:
            self._code_unit(inner, chr(int(escape[2:], 16)), raw)

    def _code_unit(self, inner: "JsonLexer", unit: str, raw: str) -> None:
        """Join surrogate pairs; a high surrogate waits for the next character."""
        if self._high and "\udc00" <= unit <= "\udfff":
            pair = self._high.encode("utf-16-be", "surrogatepass")
            pair += unit.encode("utf-16-be", "surrogatepass")
            raw, unit = self._high_raw + raw, pair.decode("utf-16-be")
            self._high = self._high_raw = ""
            inner.feed(unit, raw)
            return
        self._release(inner)
        if "\ud800" <= unit <= "\udbff":
            self._high, self._high_raw = unit, raw
        else:
            inner.feed(unit, raw)

    def _release(self, inner: "JsonLexer") -> None:
        """Pass on a high surrogate whose partner did not come."""
        if self._high:
            high, raw = self._high, self._high_raw
            self._high = self._high_raw = ""
            inner.feed(high, raw)
