"""Training rows: JSON lines read one by one, with errors that name the line and never its content.

Two shapes: ``{"text": ..., "label": ...}`` and ``{"messages": [{"role", "content"}, ...]}`` whose
last message is the assistant's answer.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Kind = Literal["classification", "chat"]
ROLES: Final = ("system", "developer", "user", "assistant")
_SHOWN: Final = 5
_LABEL_LENGTH: Final = 64
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


class RowsError(ValueError):
    """A file cannot be trained on; the message has one line per fault, the first ones."""


@dataclass(frozen=True)
class Rows:
    """The rows of a file.

    Attributes:
        kind: Their common shape.
        rows: Parsed objects with the fields of their kind only.
        lines: Line number of each row, from 1.
    """

    kind: Kind
    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    lines: tuple[int, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def canonical(self) -> list[bytes]:
        """Return one canonical encoding per row, for the identity of the data set."""
        return [json.dumps(row, sort_keys=True, ensure_ascii=False).encode() for row in self.rows]

    def texts(self) -> list[str]:
        """Return what each row says of somebody, without its label, instructions, case and white space.

        Two rows with one such text are taken for one record.
        """
        return [
            " ".join(unicodedata.normalize("NFKC", _said(row)).casefold().split())
            for row in self.rows
        ]

    def examples(self) -> list[tuple[str, str]]:
        """Return (text, label) per row; of a conversation the last question and its answer."""
        if self.kind == "classification":
            return [(row["text"], row["label"]) for row in self.rows]
        turns = [row["messages"] for row in self.rows]
        return [(question(each), each[-1]["content"].strip()) for each in turns]


def _said(row: Mapping[str, Any]) -> str:
    if "text" in row:
        return str(row["text"])
    said = [m for m in row["messages"] if m["role"] in ("user", "assistant")]
    return "\n".join(text_of(message.get("content")) for message in said)


def question(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the last user message; empty when there is none."""
    for message in reversed(messages):
        if message["role"] == "user":
            return text_of(message.get("content"))
    return ""


def text_of(content: Any) -> str:
    """Return the text of a message's content, parts joined by line breaks."""
    if isinstance(content, str):
        return content
    parts = [part.get("text", "") for part in content or () if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def parse_rows(content: bytes) -> Rows:
    """Read a JSON-lines file.

    Raises:
        RowsError: Which lines are at fault, in which field, and what to do.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise RowsError(f"line {line}: is not UTF-8; save the file as UTF-8") from None
    rows: list[Mapping[str, Any]] = []
    lines: list[int] = []
    faults: list[str] = []
    kind: Kind | None = None
    for number, source in enumerate(text.split("\n"), start=1):
        if not source.strip():
            continue
        try:
            found, row = _row(source)
            if kind is not None and found != kind:
                raise _Fault(f"is a {found} row, but the rows before are {kind}; use one shape")
            kind = found
            rows.append(row)
            lines.append(number)
        except _Fault as fault:
            faults.append(f"line {number}: {fault}")
    if faults:
        more = len(faults) - _SHOWN
        raise RowsError("\n".join(faults[:_SHOWN]) + (f"\nand {more} more" if more > 0 else ""))
    if kind is None:
        raise RowsError("the file has no rows; write one JSON object per line")
    return Rows(kind, tuple(rows), tuple(lines))


def _has_half(value: Any) -> bool:
    """Whether a text is no Unicode: half of a surrogate pair, which JSON can write and UTF-8 cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


class _Fault(Exception):
    pass


def _row(line: str) -> tuple[Kind, Mapping[str, Any]]:
    try:
        value = json.loads(line)
    except ValueError as error:
        column = getattr(error, "colno", 1)
        raise _Fault(f"is not JSON (column {column}); write one JSON object per line") from None
    except RecursionError:
        raise _Fault("is nested too deeply; write one flat JSON object per line") from None
    if _HALF.search(line) and _has_half(value):
        raise _Fault(
            "holds half of a character (\\ud800 to \\udfff alone); write it whole or leave it out"
        )
    if not isinstance(value, dict):
        raise _Fault('is not an object; write {"text": ..., "label": ...} or {"messages": [...]}')
    if "messages" in value:
        return "chat", _chat(value)
    if "text" in value or "label" in value:
        return "classification", _classification(value)
    raise _Fault('has neither "messages" nor "text" and "label"; add them')


def _classification(value: Mapping[str, Any]) -> Mapping[str, Any]:
    text, label = value.get("text"), value.get("label")
    if not isinstance(text, str) or not text.strip():
        raise _Fault('field "text" must be a string that is not empty')
    # A number is a usual way to write a class; a boolean is an int here and a class elsewhere.
    if isinstance(label, int):
        label = str(label)
    if not isinstance(label, str) or not label.strip():
        raise _Fault('field "label" must be a string that is not empty, or a whole number')
    if len(label) > _LABEL_LENGTH:
        raise _Fault(f'field "label" is longer than {_LABEL_LENGTH} characters; use short names')
    return {"text": text, "label": label.strip()}


def _chat(value: Mapping[str, Any]) -> Mapping[str, Any]:
    messages = value["messages"]
    if not isinstance(messages, list) or not messages:
        raise _Fault('field "messages" must be a list that is not empty')
    out = [_message(index, message) for index, message in enumerate(messages)]
    if out[-1]["role"] != "assistant":
        raise _Fault('field "messages" must end with the message of the assistant')
    if not any(message["role"] == "user" for message in out):
        raise _Fault('field "messages" needs a message of the user')
    return {"messages": out}


def _message(index: int, message: Any) -> Mapping[str, str]:
    where = f'field "messages[{index}]'
    if not isinstance(message, dict):
        raise _Fault(f'{where}" must be an object with "role" and "content"')
    if message.get("role") not in ROLES:
        raise _Fault(f'{where}.role" must be one of {", ".join(ROLES)}')
    content = text_of(message.get("content"))
    if not content.strip():
        raise _Fault(f'{where}.content" must be text that is not empty')
    return {"role": message["role"], "content": content}
