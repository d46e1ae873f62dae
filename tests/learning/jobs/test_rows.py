"""Training rows: what is read, and errors that name a line and never its content."""

import json

import pytest

from learning.rows import RowsError, parse_rows, question

SECRET = "Oberhuber"


def lines(*values: object) -> bytes:
    return "\n".join(json.dumps(value) for value in values).encode()


def chat(*pairs: tuple[str, object]) -> dict[str, object]:
    return {"messages": [{"role": role, "content": content} for role, content in pairs]}


def test_both_shapes_are_read() -> None:
    rows = parse_rows(
        b"\xef\xbb\xbf" + lines({"text": "a", "label": "x"}, {"text": "b", "label": 1})
    )
    assert rows.kind == "classification" and rows.examples() == [("a", "x"), ("b", "1")]
    parts = [{"type": "text", "text": "what"}, {"type": "text", "text": "now"}]
    row = chat(
        ("system", "s"),
        ("user", "first"),
        ("assistant", "a"),
        ("user", parts),
        ("assistant", "yes"),
    )
    rows = parse_rows(lines(row))
    assert rows.kind == "chat" and rows.examples() == [("what\nnow", "yes")]
    assert question([{"role": "system", "content": "s"}]) == ""


def test_a_record_is_what_a_row_says() -> None:
    rows = parse_rows(lines({"text": "Ada  L.\n", "label": "x"}, {"text": "ada l.", "label": "y"}))
    assert rows.texts() == ["ada l.", "ada l."]
    talks = [
        chat(("system", told), ("user", "Who?"), ("assistant", "Ada"), ("user", "\uff21ge"), *end)
        for told, end in (("s", [("assistant", "Old")]), ("t", [("assistant", "old")]))
    ]
    assert parse_rows(lines(*talks)).texts() == ["who? ada age old"] * 2
    # Of what a model learns to write, the answer may be all that tells one person from another.
    other = chat(("user", "Who?"), ("assistant", "Ada"), ("user", "age"), ("assistant", "36"))
    assert parse_rows(lines(other)).texts() == ["who? ada age 36"]


def test_blank_lines_do_not_shift_the_numbers() -> None:
    rows = parse_rows(b'\r\n{"text": "a", "label": "x"}\r\n\n{"text": "b", "label": "y"}\n')
    assert rows.lines == (2, 4)
    with pytest.raises(RowsError, match="^line 4: "):
        parse_rows(b'\n{"text": "a", "label": "x"}\n\nnope\n')


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (SECRET, "is not JSON (column 1)"),
        (json.dumps(SECRET), "is not an object"),
        ("[" * 100_000, "nested too deeply"),
        (json.dumps({"name": SECRET}), 'neither "messages" nor "text"'),
        (json.dumps({"text": SECRET}), 'field "label"'),
        (json.dumps({"label": SECRET}), 'field "text"'),
        (json.dumps({"text": SECRET, "label": 1.5}), 'field "label"'),
        (json.dumps({"text": SECRET, "label": SECRET * 10}), "longer than 64"),
        (json.dumps({"text": "  ", "label": SECRET}), 'field "text"'),
        ('{"text": "Oberhuber \\ud800", "label": "x"}', "half of a character"),
        (json.dumps({"messages": []}), 'field "messages"'),
        (json.dumps({"messages": [SECRET]}), 'field "messages[0]"'),
        (json.dumps(chat(("user", SECRET))), "end with the message of the assistant"),
        (json.dumps(chat(("assistant", SECRET))), "needs a message of the user"),
        (json.dumps(chat(("user", SECRET), ("robot", SECRET))), 'messages[1].role"'),
        (json.dumps(chat(("user", ""), ("assistant", SECRET))), 'messages[0].content"'),
    ],
)
def test_faults_are_named_without_content(line: str, says: str) -> None:
    with pytest.raises(RowsError) as caught:
        parse_rows(line.encode())
    assert str(caught.value).startswith("line 1: ") and says in str(caught.value)
    assert SECRET not in str(caught.value)


def test_many_faults_are_counted_and_shapes_are_not_mixed() -> None:
    with pytest.raises(RowsError, match="and 3 more"):
        parse_rows(b"x\n" * 8)
    with pytest.raises(RowsError, match="line 2: is a chat row"):
        parse_rows(lines({"text": "a", "label": "b"}, chat(("user", "a"), ("assistant", "b"))))
    with pytest.raises(RowsError, match="line 2: is not UTF-8"):
        parse_rows(b"{}\n\xff\n")
    with pytest.raises(RowsError, match="no rows"):
        parse_rows(b"\n\n")


def test_the_identity_of_rows_ignores_layout() -> None:
    one = parse_rows(b'{"text": "a",   "label": "x", "note": 1}')
    two = parse_rows(b'{"label":"x","text":"a"}\n\n')
    assert one.canonical() == two.canonical()
