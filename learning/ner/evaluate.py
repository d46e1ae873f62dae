"""Test sets, and how a tagger does on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from learning.ner.corpora import (
    RawSentence,
    SpanFilter,
    join_handles,
    keep_plain,
    keep_sec,
    raw_spans,
    read_bio,
    sentence_key,
)
from learning.ner.dataset import held_out
from learning.ner.score import Counts, Entity, count
from privacy.types import NAMED_TYPES, Span


class Tagger(Protocol):
    """Anything that finds entities in texts."""

    def tag(self, texts: Sequence[str]) -> list[list[Span]]:
        """Spans of each text, in code points."""


@dataclass(frozen=True)
class TestSet:
    """Texts (corpus tokens joined by blanks) and their entities in code points."""

    __test__ = False

    name: str
    texts: tuple[str, ...]
    gold: tuple[tuple[Entity, ...], ...]

    def head(self, count: int) -> "TestSet":
        """An evenly spread part with about ``count`` texts."""
        step = max(1, len(self.texts) // count)
        return TestSet(self.name, self.texts[::step], self.gold[::step])

    def lower(self) -> "TestSet":
        """The same in lower case; texts whose length that changes stay as they are."""
        texts = tuple(t.lower() if len(t.lower()) == len(t) else t for t in self.texts)
        return TestSet(f"{self.name}_lower", texts, self.gold)


TEST_FILES: Final = {
    "wnut17": ("wnut17/test.bio.gz", keep_plain),
    "btc": ("btc/test.bio.gz", keep_plain),
    "sec_filings": ("sec_filings/test.bio.gz", keep_sec),
    "wikigold": ("wikigold/all.bio.gz", keep_plain),
    "conll2003": ("conll2003/test.bio.gz", keep_plain),
}
"""Test file and label filter by name. CoNLL-2003 is only ever tested on, never trained on."""


def load_test_set(data: Path, name: str) -> TestSet:
    """One of ``TEST_FILES``.

    Raises:
        FileNotFoundError: The collection or the corpus is absent.
    """
    file, keep = TEST_FILES[name]
    texts, gold = [], []
    for sentence in read_bio(data / file):
        if name == "wikigold" and not held_out(name, sentence_key(sentence)):
            continue
        if name == "btc":
            sentence = join_handles(sentence)
        text, spans = to_text(sentence, keep)
        texts.append(text)
        gold.append(spans)
    return TestSet(name, tuple(texts), tuple(gold))


def to_text(sentence: RawSentence, keep: SpanFilter) -> tuple[str, tuple[Entity, ...]]:
    """A sentence as text with code point entities."""
    offsets, position = [], 0
    for token, _ in sentence:
        offsets.append((position, position + len(token)))
        position += len(token) + 1
    spans = []
    for start, end, label in raw_spans(sentence):
        kept = keep([token for token, _ in sentence[start:end]], label)
        if kept is not None:
            skipped, kind = kept
            spans.append((offsets[start + skipped][0], offsets[end - 1][1], kind))
    return sentence_key(sentence), tuple(spans)


def evaluate(tagger: Tagger, test: TestSet, batch: int = 64) -> dict[str, dict[str, float]]:
    """Overlap recall and precision and exact F1, for all types together and each by itself.

    Overlap counts whatever the type: a name found under the wrong type does not leave either.

    Returns:
        ``{"ALL": {...}, "PERSON": {...}, ...}``, the figures of ``Counts.summary``.
    """
    found: list[list[Span]] = []
    for start in range(0, len(test.texts), batch):
        found.extend(tagger.tag(test.texts[start : start + batch]))
    result = {"ALL": _total(test.gold, found, NAMED_TYPES).summary()}
    for kind in NAMED_TYPES:
        result[kind] = _total(test.gold, found, (kind,)).summary()
    return result


def _total(
    gold: Sequence[Sequence[Entity]],
    found: Sequence[Sequence[Span]],
    types: Sequence[str],
) -> Counts:
    total = Counts()
    for golds, spans in zip(gold, found, strict=True):
        reported = [(s.start, s.end, s.type) for s in spans]
        mine = [g for g in golds if g[2] in types]
        ours = [r for r in reported if r[2] in types]
        recall, precision, exact = count(mine, reported), count(golds, ours), count(mine, ours)
        total = total + Counts(
            gold=len(mine),
            found=len(ours),
            touched=recall.touched,
            justified=precision.justified,
            exact=exact.exact,
        )
    return total
