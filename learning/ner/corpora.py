"""Reading the training corpora and mapping their labels to PERSON, ORG and LOC."""

import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privacy.detection.ner.words import split_words
from privacy.types import LOC, ORG, PERSON


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence: its words and the entities over them.

    Attributes:
        words: Words as ``split_words`` would give them.
        spans: ``(first word, one past the last word, type)``, in order, not overlapping.
    """

    words: tuple[str, ...]
    spans: tuple[tuple[int, int, str], ...]


RawSentence = list[tuple[str, str]]

LABELS: Mapping[str, str] = {
    **dict.fromkeys(
        ("per", "person", "politician", "scientist", "writer", "musicalartist", "researcher"),
        PERSON,
    ),
    **dict.fromkeys(
        ("org", "organisation", "politicalparty", "university", "band", "group", "corporation"),
        ORG,
    ),
    **dict.fromkeys(("loc", "location", "country", "geo"), LOC),
}
"""Corpus label, in lower case, to our type. Anything else is no entity for us."""

# Inside the silver person spans of GMB; a title is no name.
_TITLES = frozenset(
    "president mr mrs ms dr prof sir lady lord king queen prince princess pope senator secretary"
    " general minister prime foreign chancellor ambassador judge captain colonel major spokesman"
    " spokeswoman chairman governor vice deputy former defense defence state rep sen gen lt"
    " ayatollah sheikh imam premier justice mayor lieutenant sergeant envoy".split()
)


def read_bio(path: Path) -> Iterator[RawSentence]:
    """Sentences of a gzipped two-column BIO file as ``(token, tag)`` lists."""
    sentence: RawSentence = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            token, _, tag = line.rstrip("\n").partition("\t")
            if token:
                sentence.append((token, tag or "O"))
            elif sentence:
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def raw_spans(sentence: RawSentence) -> list[tuple[int, int, str]]:
    """Entities of a BIO sentence as ``(first token, one past the last, corpus label)``."""
    spans: list[tuple[int, int, str]] = []
    for index, (_, tag) in enumerate(sentence):
        prefix, _, label = tag.partition("-")
        if prefix == "I" and spans and spans[-1][1:] == (index, label):
            spans[-1] = (spans[-1][0], index + 1, label)
        elif prefix in ("B", "I"):
            spans.append((index, index + 1, label))
    return spans


def to_example(sentence: RawSentence, keep: "SpanFilter") -> Example:
    """Split corpus tokens into the tagger's words and keep the entities that ``keep`` maps."""
    words: list[str] = []
    first: list[int] = []
    for token, _ in sentence:
        first.append(len(words))
        words.extend(token[start:end] for start, end in split_words(token))
    first.append(len(words))
    spans = []
    for start, end, label in raw_spans(sentence):
        kept = keep([token for token, _ in sentence[start:end]], label)
        if kept is not None:
            skipped, kind = kept
            low, high = first[start + skipped], first[end]
            if low < high:
                spans.append((low, high, kind))
    return Example(tuple(words), tuple(spans))


SpanFilter = Callable[[Sequence[str], str], "tuple[int, str] | None"]
"""``(tokens, corpus label)`` to ``(leading tokens to drop, our type)``, or None for no entity."""


def keep_plain(tokens: Sequence[str], label: str) -> tuple[int, str] | None:
    """The label table, nothing left out."""
    kind = LABELS.get(label.lower())
    return None if kind is None else (0, kind)


def join_handles(sentence: RawSentence) -> RawSentence:
    """Repair handles of the Broad Twitter Corpus.

    Where its tokens part the sign from the name, it often tags both as an entity each, or only one
    of them. They become one entity of the type of the name, else of the sign.
    """
    repaired = list(sentence)
    for index in range(len(repaired) - 1):
        (sign, sign_tag), (name, name_tag) = repaired[index], repaired[index + 1]
        if sign != "@" or (sign_tag == "O" and name_tag == "O"):
            continue
        label = (sign_tag if name_tag == "O" else name_tag).partition("-")[2]
        repaired[index : index + 2] = [(sign, f"B-{label}"), (name, f"I-{label}")]
    return repaired


def keep_sec(tokens: Sequence[str], label: str) -> tuple[int, str] | None:
    """Loan agreements mark roles ("Lender", "the Bank") as entities; a role is no name."""
    roles = {"borrower", "lender", "bank", "company", "property", "person", "permitted"}
    if all(token.lower() in roles or token == token.lower() for token in tokens):
        return None
    return keep_plain(tokens, label)


def gmb_filter(sentences: Iterable[RawSentence]) -> SpanFilter:
    """The filter of the silver corpus GMB, fitted to its own statistics.

    Its label ``gpe`` holds countries and nationality adjectives alike. A ``gpe`` stays (as LOC)
    only where the same words are more often a ``geo``, which adjectives are not. Titles leave
    person spans.
    """
    geo: Counter[str] = Counter()
    gpe: Counter[str] = Counter()
    for sentence in sentences:
        for start, end, label in raw_spans(sentence):
            surface = " ".join(token for token, _ in sentence[start:end]).casefold()
            if label == "geo":
                geo[surface] += 1
            elif label == "gpe":
                gpe[surface] += 1

    def keep(tokens: Sequence[str], label: str) -> tuple[int, str] | None:
        surface = " ".join(tokens).casefold()
        if label == "gpe":
            return (0, LOC) if geo[surface] > gpe[surface] else None
        if label != "per":
            return keep_plain(tokens, label)
        skipped = 0
        while skipped < len(tokens) and tokens[skipped].strip(".").casefold() in _TITLES:
            skipped += 1
        return None if skipped == len(tokens) else (skipped, PERSON)

    return keep


def in_share(key: str, share: float) -> bool:
    """Whether ``key`` falls into a fixed pseudo-random share of all keys (by SHA-256)."""
    digest = hashlib.sha256(key.encode("utf-8")).digest()
    return int.from_bytes(digest[:4], "big") < share * 2**32


def sentence_key(sentence: RawSentence) -> str:
    """The text of a sentence, as the key of a stable split."""
    return " ".join(token for token, _ in sentence)
