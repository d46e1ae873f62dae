"""Names in the columns of tables: CSV, Markdown, SQL's INSERT.

The head of a column says what an everyday word in it is.
"""

import re
from collections.abc import Iterator
from typing import Final

from privacy.detection.recognizers.names import make_word
from privacy.detection.recognizers.person_field import PART_OF_LABEL, key_kind, may_be_value
from privacy.types import PERSON, Span

_SEPARATORS: Final = ("|", "\t", ";", ",")
_CELLS: Final = {
    s: re.compile(rf"\"[^\"\n]*\"|[^{re.escape(s)}\n\"]+|(?<={re.escape(s)})(?={re.escape(s)})")
    for s in _SEPARATORS
}
_LINE: Final = re.compile(r"^[^\n]*$", re.M)
_INSERT: Final = re.compile(r"\((?P<head>[^()]{3,600})\)\s{0,4}VALUES?\s{0,4}", re.I)
_ROW: Final = re.compile(r"\s{0,8},?\s{0,8}\((?P<row>(?:'(?:[^'\n]|'')*+'|[^()'])*+)\)")
_ROW_CELL: Final = re.compile(r"\s*+'(?:[^'\n]|'')*+'\s*+|[^,']+")
_VALUE: Final = re.compile(r"[\s\"'`*]*(?P<value>[^\W\d_](?:[\w .,'’-]{0,58}[\w.])?)[\s\"'`*]*")

_Columns = dict[int, str]


class PersonColumnRecognizer:
    """Cells below a head such as ``last_name``."""

    name = "person.column"
    types = (PERSON,)
    whole_text = True  # the head of a long table stands far above its rows

    def find(self, text: str) -> list[Span]:
        if not PART_OF_LABEL.search(text):
            return []
        found = [*_in_lines(text), *_in_inserts(text)]
        return [Span(start, end, PERSON, 0.92, self.name) for start, end in found]


def _in_lines(text: str) -> Iterator[tuple[int, int]]:
    columns: _Columns = {}
    separator = ""
    for line in _LINE.finditer(text):
        cells = list(_CELLS[separator].finditer(text, *line.span())) if columns else []
        if len(cells) < 2 or len(cells) <= max(columns):
            separator, columns = _head_of(text, line)
            continue
        yield from _named(cells, columns)


def _head_of(text: str, line: re.Match[str]) -> tuple[str, _Columns]:
    for separator in _SEPARATORS if PART_OF_LABEL.search(line.group()) else ():
        if separator in line.group():
            return separator, _columns(_CELLS[separator].finditer(text, *line.span()))
    return "", {}


def _in_inserts(text: str) -> Iterator[tuple[int, int]]:
    for insert in _INSERT.finditer(text):
        columns = _columns(_ROW_CELL.finditer(text, *insert.span("head")))
        place = insert.end()
        while columns and (row := _ROW.match(text, place)) is not None:
            yield from _named(list(_ROW_CELL.finditer(text, *row.span("row"))), columns)
            place = row.end()


def _columns(cells: Iterator[re.Match[str]]) -> _Columns:
    kinds = ((index, key_kind(cell.group().strip(" \t\"'`*"))) for index, cell in enumerate(cells))
    return {index: kind for index, kind in kinds if kind}


def _named(cells: list[re.Match[str]], columns: _Columns) -> Iterator[tuple[int, int]]:
    for index, kind in columns.items():
        value = _VALUE.fullmatch(cells[index].group()) if index < len(cells) else None
        if value is not None and _is_name(value.group("value"), sure=kind == "sure"):
            start, end = value.span("value")
            yield cells[index].start() + start, cells[index].start() + end


def _is_name(value: str, *, sure: bool) -> bool:
    if not may_be_value(value, sure=sure):
        return False
    # In lower case below "name" it may be a parameter: "port" and "hash" are families, too.
    return sure or not value.islower() or any(make_word(w, 0).given for w in value.split())
