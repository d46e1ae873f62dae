"""Identity of the round trip and independence of the chunking, on random input."""

import json
import unicodedata
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.restoration import Pair, Restorer, stands_alone
from privacy.restoration.casing import derived

SUBSTITUTES = ["Ilse", "Varga", "Tadeo", "Brandt", "Novák", "Quintero", "deVries", "Anne-Lore"]
WHOLES = ["Kestrel Dental Supplies", "Nordwerk AG", "Upper Fenwick"]
NOISE = st.one_of(
    st.sampled_from(
        [
            " ",
            "  ",
            "\n",
            "\r\n",
            "\u00a0",
            ", ",
            ".",
            "_",
            "**",
            "'s",
            "’",
            "-",
            '"',
            "\\",
            "\t",
            "\u200f",
        ]
        + [
            "é",
            "e\u0301",
            "\u0301",
            "🚀",
            "👩‍👩‍👧",
            "❤️",
            "שלום",
            "مرحبا",
            "是",
            "는",
            "x",
            "7",
            "²",
            "@",
            "Zz",
        ]
    ),
    st.text(max_size=6),
)
NAME = st.one_of(
    st.sampled_from(
        [
            "McDonald",
            "o'Neil",
            "iPhone",
            "IBM",
            "de la Cruz",
            "Jean-Luc",
            "Müller",
            "Mu\u0308ller",
            "straße",
        ]
        + ["Nguyễn", "Иванов", "Ἀλέξανδρος", "دانا", "x", "Ʒunä", "ﬁn", "İpek"]
    ),
    st.text(st.characters(categories=["Lu", "Ll", "Lo", "Mn"]), min_size=1, max_size=8),
)
MANY = settings(max_examples=150, deadline=None)


@st.composite
def pair_lists(draw: st.DrawFn) -> list[Pair]:
    originals = draw(st.lists(NAME, min_size=1, max_size=6, unique_by=str.casefold))
    kinds = draw(st.lists(st.sampled_from(["given", "family"]), min_size=6, max_size=6))
    chosen = draw(st.permutations(SUBSTITUTES))
    pairs = [
        Pair(s, o, k) for s, o, k in zip(chosen, originals, kinds, strict=False) if o == o.strip()
    ]
    whole = draw(st.sampled_from(WHOLES))
    pairs.append(
        Pair(whole, draw(st.sampled_from(["Acme Salt GmbH", "Øresund  Bro", "北京"])), "whole")
    )
    pairs.append(Pair("qx7@example.com", "ada.quist@corp.test", "exact"))
    if len(pairs) > 3:
        # The surface of two components, one blank between them.
        first, last = pairs[0], pairs[1]
        surface = f"{first.substitute} {last.substitute}"
        pairs.append(Pair(surface, f"{first.original} {last.original}", "mention"))
    return pairs


def written(pair: Pair, shape: str) -> tuple[str, str]:
    """The original and its substitute in one case shape, as written when there is none."""
    if pair.kind in ("given", "family", "whole"):
        for form, original in derived(pair.substitute, pair.original, (shape,)).items():
            return original, form
    return pair.original, pair.substitute


@st.composite
def round_trips(draw: st.DrawFn) -> tuple[list[Pair], str, str]:
    """Pairs, a text, and the text with the originals replaced where they stand alone."""
    pairs = draw(pair_lists())
    reference = st.tuples(
        st.sampled_from(pairs), st.sampled_from(["none", "upper", "lower", "title"])
    )
    parts = draw(st.lists(st.one_of(NOISE, reference), max_size=12))
    chosen: list[tuple[str, str]] = []
    for part in parts:
        if isinstance(part, str):
            chosen.append((part, part))
        elif part[1] == "none":
            chosen.append((part[0].original, part[0].substitute))
        else:
            chosen.append(written(*part))
    # Replace only what stands alone before and after, which another replacement may change.
    while True:
        kept = _on_borders(chosen)
        if kept == chosen:
            break
        chosen = kept
    return pairs, "".join(o for o, _ in chosen), "".join(s for _, s in chosen)


def _on_borders(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    texts = ["".join(part[side] for part in parts) for side in (0, 1)]
    kept: list[tuple[str, str]] = []
    at = [0, 0]
    for part in parts:
        ends = [at[side] + len(part[side]) for side in (0, 1)]
        alone = part[0] == part[1] or all(
            stands_alone(texts[side], at[side], ends[side]) for side in (0, 1)
        )
        kept.append(part if alone else (part[0], part[0]))
        at = ends
    return kept


@MANY
@given(round_trips())
def test_restoring_the_substituted_text_gives_the_text(case: tuple[list[Pair], str, str]) -> None:
    pairs, text, sanitised = case
    assert Restorer(pairs, fuzzy=False).restore(sanitised) == text
    assert Restorer(pairs).protecting([sanitised]).restore(sanitised) == text


PIECES = st.sampled_from(
    [
        "Ilse",
        "Var",
        "ga",
        "Varga",
        "ilse",
        "ILSE",
        "Novák",
        "Nova\u0301k",
        "Vargha",
        "Varg",
        "Tadeos",
    ]
    + [
        "Kestrel",
        "Dental",
        "Supplies",
        "Kestrel Dental Supplies",
        "qx7@example.com",
        "QX7@",
        "Quint",
    ]
    + [
        "ero",
        "reo",
        "Brandts",
        "Brandtova",
        "PERSON_1",
        "[",
        "]",
        "1",
        "\\",
        '"',
        "{",
        "}",
        ":",
        "._",
    ]
)
PAIRS = [
    *(Pair(s, f'{s[::-1]} "x" \\', "family") for s in SUBSTITUTES),
    *(Pair(s, s[::-1], "whole") for s in WHOLES),
    Pair("Ilse M. Varga", "Marta K. Novak", "mention"),
    Pair("qx7@example.com", "ada@corp.test", "exact"),
    Pair("[PERSON_1]", "Izzy", "placeholder"),
    Pair("odd  \n\n gap", "Quist", "exact"),
    Pair("11", "4242", "exact"),
]
TEXT = st.lists(st.one_of(PIECES, NOISE), max_size=14).map("".join)
RESTORER = Restorer(PAIRS)


@st.composite
def chunked(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXT) -> tuple[str, list[str]]:
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    bounds = [0, *cuts, len(text)]
    return text, [text[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]


@settings(max_examples=600, deadline=None)
@given(chunked())
def test_chunking_does_not_matter(case: tuple[str, list[str]]) -> None:
    text, chunks = case
    expected = RESTORER.restore(text)
    stream = RESTORER.stream()
    assert "".join(map(stream.feed, chunks)) + stream.finish() == expected
    single = RESTORER.stream()
    assert "".join(map(single.feed, text)) + single.finish() == expected


def _nested(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(children, max_size=3),
        st.dictionaries(TEXT, children, max_size=3),
        children.map(json.dumps),
        children.map(lambda value: json.dumps([value], ensure_ascii=False)),
    )


LEAVES = st.one_of(TEXT, st.sampled_from([11, 1, -11, 11.5, True, None, 211]))
TREES = st.recursive(LEAVES, _nested, max_leaves=6)
JSON_TEXT = st.one_of(
    TREES.map(json.dumps),
    TREES.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
    TEXT,
    TEXT.map(lambda text: '{"a": "' + text),
)


@settings(max_examples=400, deadline=None)
@given(chunked(JSON_TEXT))
def test_chunking_of_json_does_not_matter(case: tuple[str, list[str]]) -> None:
    text, chunks = case
    expected = RESTORER.restore_json_text(text)
    stream = RESTORER.stream(json_escaped=True)
    assert "".join(map(stream.feed, chunks)) + stream.finish() == expected
    single = RESTORER.stream(json_escaped=True)
    assert "".join(map(single.feed, text)) + single.finish() == expected


@MANY
@given(TREES)
def test_json_text_parses_to_the_restored_tree(tree: Any) -> None:
    # Two keys that become one differ by design: the tree keeps both, a text cannot look ahead.
    if not _keys_meet(tree):
        text = RESTORER.restore_json_text(json.dumps(tree))
        assert json.loads(text) == RESTORER.restore_json(tree)


def _keys_meet(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_keys_meet, value))
    if not isinstance(value, dict):
        return False
    restored = RESTORER.restore_json(list(value))
    return len({*restored, *value}) < len({*value}) + sum(
        new != old for new, old in zip(restored, value, strict=True)
    ) or any(map(_keys_meet, value.values()))


@MANY
@given(st.text(max_size=60))
def test_other_text_comes_back_unchanged(text: str) -> None:
    folded = unicodedata.normalize("NFKD", text).casefold()
    if not any(s.casefold()[:4] in folded for s in SUBSTITUTES) and "11" not in text:
        assert RESTORER.restore(text) == text
