"""What the demo shows."""

import io

import orjson
from rich.console import Console

from gateway.cli.demo_view import introduce, show_turn


def entity(original: str, substitute: str, type: str, epsilon: float = 0.0) -> dict[str, object]:
    return {"original": original, "substitute": substitute, "type": type, "epsilon": epsilon}


TURN = {
    "user": "Who signed?",
    "context": ["Signed by Ilse\n   Varga on 2 July."],
    "sent": orjson.dumps(
        {
            "messages": [
                {"role": "user", "content": "first"},
                {"role": "assistant", "content": "answer"},
                {"role": "user", "content": "Signed by Lise\n   Siegel on 9 July. Who signed?"},
            ]
        }
    ).decode(),
    "received": "Lise Siegel.",
    "restored": "Ilse Varga.",
    "entities": [
        entity("Ilse\n   Varga", "Lise\n   Siegel", "PERSON", 2.0),
        entity("2 July", "9 July", "DATE"),
        entity("Graz", "Linz", "LOC"),
    ],
}


def shown(width: int) -> str:
    out = Console(width=width, file=io.StringIO(), force_terminal=False)
    introduce(out)
    show_turn(out, TURN)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    return str(text)


def test_panes_stand_below_each_other_in_a_narrow_window() -> None:
    panes = [line for line in shown(80).splitlines() if line.startswith("╭")]
    assert [line.strip("╭─╮ ") for line in panes] == [
        "user + context", "provider saw", "provider said", "user reads",
    ]  # fmt: skip
    assert {len(line) for line in panes} == {80}
    tops = [line for line in shown(120).splitlines() if line.startswith("╭")]
    assert len(tops) == 2 and max(map(len, tops)) <= 120


def test_what_a_table_and_a_pane_say() -> None:
    text = shown(110)
    assert "135 million parameters" in " ".join(text.split())
    assert "+ 2 earlier messages" in text
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    assert ["Ilse Varga", "Lise Siegel", "PERSON", "2.000"] in rows
    assert ["2 July", "9 July", "DATE", "days account"] in rows
    assert ["Graz", "Linz", "LOC", "known"] in rows
