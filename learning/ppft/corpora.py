"""Readers of the corpora in the data collection: files in, unified records out."""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from privacy.ppft.prompt import Record, multiple_choice
from privacy.ppft.tasks import Task

Split = Literal["train", "eval"]
_NEWS: Final = ("World", "Sports", "Business", "Technology")
_NEWS_NAMES: Final = {"Sci/Tech": "Technology"}
_MMLU: Final = (
    "professional_law",
    "professional_medicine",
    "clinical_knowledge",
    "jurisprudence",
    "college_medicine",
)

_INTENTS: Final = (
    ("treatment", "treatment"),
    ("inherited", "inheritance"),
    ("how many people", "frequency"),
    ("genetic changes", "genetics"),
    ("symptoms", "symptoms"),
    ("what causes", "causes"),
    ("outlook", "outlook"),
    ("diagnose", "diagnosis"),
    ("research", "research"),
    ("what is", "information"),
    ("information about", "information"),
)


class CorpusError(ValueError):
    """A corpus is unknown or its folder lacks a file; the message says which."""


def read(name: str, folder: Path, split: Split) -> Iterator[Record]:
    """Yield the records of one corpus.

    Args:
        name: One of `NAMES`.
        folder: The data collection, one sub-folder a corpus.
        split: Where a corpus publishes no training part here, the larger of its files trains and the
            other is held out, or every tenth item is.

    Raises:
        CorpusError: No such corpus, or a file is missing.
    """
    if name not in _READERS:
        raise CorpusError(f"unknown corpus {name!r}; known are {', '.join(NAMES)}")
    try:
        yield from _READERS[name](folder, split)
    except FileNotFoundError as error:
        raise CorpusError(
            f"{name}: {error.filename} is missing; name its folder by --data"
        ) from None


def _sst2(folder: Path, split: Split) -> Iterator[Record]:
    path = folder / "sst2" / ("train.tsv.gz" if split == "train" else "test.tsv.gz")
    for row in _tsv(path):
        answer = ("negative", "positive")[int(row["label"])]
        yield Record(Task.SENTIMENT, row["sentence"].strip(), answer=answer)


def _ag_news(folder: Path, split: Split) -> Iterator[Record]:
    if split == "eval":
        for item in _lines(folder / "ag_news" / "test.jsonl.gz"):
            text = f"{item['title']}. {item['description']}"
            yield Record(Task.TOPIC, text, answer=_NEWS[item["label"]])
        return
    with gzip.open(
        folder / "ag_news" / "extra_dev_from_train.tsv.gz", "rt", encoding="utf-8"
    ) as handle:
        for row in csv.reader(handle, delimiter="\t", quoting=csv.QUOTE_NONE):
            if len(row) == 2 and (answer := _NEWS_NAMES.get(row[1], row[1])) in _NEWS:
                yield Record(Task.TOPIC, row[0], answer=answer)


def _diagnoses(folder: Path, split: Split, prefix: str) -> Iterator[Record]:
    part = "test" if split == "train" else "dev"  # the larger file trains
    for item in _lines(folder / "privacyrestore" / f"{prefix}.{part}.jsonl.gz"):
        options = item["options"]
        options = list(options.values()) if isinstance(options, dict) else options
        try:
            yield multiple_choice(
                item["question_init"], options, item.get("correct_answer") or item["answer"]
            )
        except ValueError:
            continue  # some items repeat an option


def _mmlu(folder: Path, split: Split) -> Iterator[Record]:
    for part in _MMLU:
        items = _lines(folder / "mmlu_law_med" / f"{part}_test.jsonl.gz")
        for item in _tenth(items, split):
            try:
                yield multiple_choice(item["question"], item["choices"], item["answer"])
            except ValueError:
                continue


def _squad(folder: Path, split: Split) -> Iterator[Record]:
    # The other half's answers are withheld, so this one is split by paragraph.
    for paragraph in _tenth(_lines(folder / "squad2" / "dev.jsonl.gz"), split):
        for item in paragraph["qas"]:
            if not item["is_impossible"] and item["answers"]:
                yield Record(
                    Task.EXTRACT,
                    paragraph["context"],
                    item["question"],
                    answer=item["answers"][0],
                    accepted=tuple(item["answers"]),
                )


def _pubmed(folder: Path, split: Split) -> Iterator[Record]:
    for item in _tenth(_lines(folder / "pubmedqa" / "labeled.jsonl.gz"), split):
        yield Record(
            Task.VERDICT,
            " ".join(item["CONTEXTS"]),
            item["QUESTION"],
            answer=item["final_decision"],
        )


def _medquad(folder: Path, split: Split) -> Iterator[Record]:
    for item in _tenth(_lines(folder / "medquad" / "sample.jsonl.gz"), split):
        yield Record(Task.ANSWER, question=item["question"], answer=item["answer"])


def _intents(folder: Path, split: Split) -> Iterator[Record]:
    """What a medical question asks for, read off MedQuAD's question forms."""
    for item in _tenth(_lines(folder / "medquad" / "sample.jsonl.gz"), split):
        question = item["question"].lower()
        found = next((intent for sign, intent in _INTENTS if sign in question), None)
        if found:
            yield Record(Task.INTENT, question=item["question"], answer=found)


def _tenth(items: Iterator[dict[str, Any]], split: Split) -> Iterator[dict[str, Any]]:
    """Yield every tenth item for evaluation, the others for training."""
    for number, item in enumerate(items):
        if (number % 10 == 9) == (split == "eval"):
            yield item


def _tsv(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        yield from csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as handle:
        for line in handle:
            yield json.loads(line)


_READERS: Final[dict[str, Callable[[Path, Split], Iterator[Record]]]] = {
    "sst2": _sst2,
    "ag_news": _ag_news,
    "pri_ddx": lambda folder, split: _diagnoses(folder, split, "Pri-DDXPlus"),
    "pri_nlice": lambda folder, split: _diagnoses(folder, split, "Pri-NLICE"),
    "pri_slja": lambda folder, split: _diagnoses(folder, split, "Pri-SLJA"),
    "mmlu": _mmlu,
    "squad2": _squad,
    "pubmedqa": _pubmed,
    "medquad": _medquad,
    "medquad_intent": _intents,
}
NAMES: Final = tuple(_READERS)
