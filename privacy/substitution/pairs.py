"""From a session's map to the pairs that restoration works with."""

from collections.abc import Iterable
from typing import Final

from privacy.restoration import Pair
from privacy.substitution.entry import FAMILY, GIVEN, INITIAL, MENTION, Entry, is_marker
from privacy.substitution.number_pairs import number_pairs
from privacy.substitution.phone_pairs import phone_pairs
from privacy.types import PHONE

_KINDS: Final = {GIVEN: "given", FAMILY: "family"}


def restoration_pairs(entries: Iterable[Entry]) -> list[Pair]:
    """Return every pair of a session; markers that several values share have none."""
    pairs: list[Pair] = []
    for entry in entries:
        if entry.fine_type == INITIAL or entry.detail.get("restore") == "no":
            continue
        pairs.append(Pair(entry.substitute, entry.original, _kind(entry)))
        if entry.fine_type == MENTION:
            pairs.extend(_initialled(entry))
            pairs.extend(_joined(entry))
        if entry.type == PHONE and not is_marker(entry.substitute):
            pairs.extend(phone_pairs(entry.substitute, entry.original))
        elif not is_marker(entry.substitute):
            pairs.extend(number_pairs(entry.type, entry.substitute, entry.original))
    return list(dict.fromkeys(pairs))


def _kind(entry: Entry) -> str:
    if entry.fine_type == MENTION and " " in entry.substitute:
        return "mention"  # of markers, too: only so the white space between them comes back
    if is_marker(entry.substitute):
        return "placeholder"
    if entry.fine_type == MENTION:
        return "mention"
    if entry.pool_index is not None and entry.fine_type.startswith(("org", "loc.")):
        return "whole"
    return _KINDS.get(entry.fine_type, "exact")


def _joined(mention: Entry) -> list[Pair]:
    """Derive ``MartaNovak`` and ``marta_novak`` from ``Marta Novak``, as in a tag or an account's name."""
    original, substitute = mention.original.split(" "), mention.substitute.split(" ")
    if mention.detail.get("order") != "natural" or len(original) != 2 or len(substitute) != 2:
        return []
    if not all(word.isalpha() for word in (*original, *substitute)):
        return []
    return [Pair(joint.join(substitute), joint.join(original), "whole") for joint in ("", "_")]


def _initialled(mention: Entry) -> list[Pair]:
    """Derive ``M. Novak`` and ``Marta N.`` from ``Marta Novak``: models abbreviate, too."""
    if mention.detail.get("order") != "natural" or "given" not in mention.detail:
        return []
    original, substitute = mention.original.split(" "), mention.substitute.split(" ")
    family = mention.detail.get("family", "")
    width = len(family.split(" "))
    if not family or len(original) <= width or len(substitute) < 2:
        return []
    short = Pair(
        f"{substitute[0]} {substitute[-1][0]}.",
        f"{original[0]} {original[-width][0]}.",
        "initialled",
    )
    return [short] + [
        Pair(
            f"{substitute[0][0]}{dot} {substitute[-1]}",
            f"{original[0][0]}{dot} {' '.join(original[-width:])}",
            "initialled",
        )
        for dot in (".", "")
    ]
