"""What `penname demo` shows: four panes and a table for each turn, the account at the end."""

from typing import Any, Final

import orjson
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from privacy.types import NAMED_TYPES

_SIDE_BY_SIDE: Final = 100  # columns from which two panes stand beside each other


def introduce(out: Console) -> None:
    """Say who plays whom."""
    out.print(
        "The provider of this demo is SmolLM2, a model of 135 million parameters on this machine: "
        "it answers in seconds without a key, and it is sometimes wrong.",
        style="dim",
    )


def show_turn(out: Console, turn: dict[str, Any]) -> None:
    """Show what each side saw of one question."""
    originals = [e["original"] for e in turn["entities"]]
    substitutes = [e["substitute"] for e in turn["entities"]]
    messages = orjson.loads(turn["sent"])["messages"]
    sent = messages[-1]["content"]
    if len(messages) > 1:
        sent += f"\n\n+ {len(messages) - 1} earlier messages"
    asked = turn["user"] + "\n\n" + "\n\n".join(turn["context"])
    panes = (
        ("user + context", asked, originals, "green"),
        ("provider saw", sent, substitutes, "magenta"),
        ("provider said", turn["received"], substitutes, "magenta"),
        ("user reads", turn["restored"], originals, "green"),
    )
    width = out.width if out.width < _SIDE_BY_SIDE else out.width // 2 - 1
    out.rule(turn["user"])
    out.print(
        Columns(
            [
                Panel(_marked(text, words, colour), title=title, width=width)
                for title, text, words, colour in panes
            ]
        )
    )
    table = Table("original", "substitute", "type", "ε of this turn")
    for entity in turn["entities"]:
        table.add_row(
            one_line(entity["original"]),
            one_line(entity["substitute"]),
            entity["type"],
            cost(entity),
        )
    out.print(table)


def one_line(value: str) -> str:
    """Return a value with each run of blanks and line breaks as one blank."""
    return " ".join(value.split())


def cost(entity: dict[str, Any]) -> str:
    """Return what an entity cost in its turn; each draw is charged once, at its first appearance."""
    if entity["type"] == "DATE":
        return "days account"
    if entity["type"] in NAMED_TYPES and not entity["epsilon"]:
        return "known"
    return f"{entity['epsilon']:.3f}"


def _marked(text: str, words: list[str], colour: str) -> Text:
    marked = Text(text)
    parts = {part for word in words for part in (word, *word.split()) if len(part) > 2}
    marked.highlight_words(sorted(parts, key=len, reverse=True), style=f"bold {colour}")
    return marked


def show_account(out: Console, account: dict[str, Any] | None) -> None:
    """Show pool levels and what the conversation cost."""
    if account is None:
        return
    table = Table("pool", "size", "used", "remaining", title="pool levels")
    for pool in account["pools"]:
        table.add_row(pool["type"], *(str(pool[k]) for k in ("size", "used", "remaining")))
    out.print(table)
    ledger, budget = account["ledger"], account["budget"]
    out.print(
        f"ε spent {ledger['epsilon']:.3f} of {budget['epsilon']} in {ledger['rows']} ledger rows; "
        f"best bound: {ledger['best']['name']}",
        style="bold",
        highlight=False,
    )
