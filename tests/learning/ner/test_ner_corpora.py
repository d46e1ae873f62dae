"""Reading corpora, mapping labels, keeping research-only data out."""

import gzip
from pathlib import Path

import pytest

from learning.ner.corpora import (
    Example,
    RawSentence,
    gmb_filter,
    in_share,
    join_handles,
    keep_plain,
    keep_sec,
    raw_spans,
    read_bio,
    to_example,
)


def sentence(text: str) -> RawSentence:
    """``word/TAG word/TAG`` as a corpus sentence."""
    return [(token, tag) for token, _, tag in (item.rpartition("/") for item in text.split())]


def test_reads_sentences(tmp_path: Path) -> None:
    path = tmp_path / "x.bio.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("Ilse\tB-person\nVarga\tI-person\n\n\nhi\tO\n")
    assert list(read_bio(path)) == [[("Ilse", "B-person"), ("Varga", "I-person")], [("hi", "O")]]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a/B-PER b/I-PER c/O", [(0, 2, "PER")]),
        ("a/B-PER b/B-PER", [(0, 1, "PER"), (1, 2, "PER")]),
        ("a/I-PER b/I-LOC", [(0, 1, "PER"), (1, 2, "LOC")]),
        ("a/B-PER b/O c/I-PER", [(0, 1, "PER"), (2, 3, "PER")]),
    ],
)
def test_spans_of_tags(text: str, spans: list[tuple[int, int, str]]) -> None:
    assert raw_spans(sentence(text)) == spans


def test_corpus_tokens_become_the_taggers_words() -> None:
    example = to_example(sentence("O'Neil/B-PER lives/O in/O U.S./B-geo"), keep_plain)
    assert example == Example(
        ("O", "'", "Neil", "lives", "in", "U", ".", "S", "."),
        ((0, 3, "PERSON"), (5, 9, "LOC")),
    )


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("group", "ORG"),
        ("corporation", "ORG"),
        ("politicalparty", "ORG"),
        ("musicalartist", "PERSON"),
        ("country", "LOC"),
    ],
)
def test_labels_map(label: str, kind: str) -> None:
    assert keep_plain(["x"], label) == (0, kind)


@pytest.mark.parametrize("label", ["product", "creative-work", "MISC", "tim", "algorithm"])
def test_other_labels_are_no_entity(label: str) -> None:
    assert keep_plain(["x"], label) is None


def test_roles_of_loan_agreements_are_no_names() -> None:
    assert keep_sec(["Lender"], "PER") is None
    assert keep_sec(["bank"], "ORG") is None
    assert keep_sec(["Silicon", "Valley", "Bank"], "ORG") == (0, "ORG")


def test_nationality_adjectives_and_titles_leave_gmb() -> None:
    corpus = [
        sentence("Iraq/B-geo and/O Iraq/B-geo"),
        sentence("British/B-gpe troops/O"),
        sentence("Iraq/B-gpe"),
    ]
    keep = gmb_filter(corpus)
    assert keep(["British"], "gpe") is None
    assert keep(["Iraq"], "gpe") == (0, "LOC")
    assert keep(["Prime", "Minister", "Varga"], "per") == (2, "PERSON")
    assert keep(["President"], "per") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@/B-PER ilse/B-PER hi/O", "@/B-PER ilse/I-PER hi/O"),
        ("@/O ilse/B-ORG", "@/B-ORG ilse/I-ORG"),
        ("@/B-LOC ilse/O", "@/B-LOC ilse/I-LOC"),
        ("@/O ilse/O", "@/O ilse/O"),
        ("a/B-PER b/B-PER", "a/B-PER b/B-PER"),
    ],
)
def test_split_handles_become_one_entity(text: str, expected: str) -> None:
    assert join_handles(sentence(text)) == sentence(expected)


def test_shares_are_stable_and_of_the_right_size() -> None:
    picked = [in_share(f"key {number}", 0.2) for number in range(5000)]
    assert 900 < sum(picked) < 1100
    assert picked == [in_share(f"key {number}", 0.2) for number in range(5000)]
