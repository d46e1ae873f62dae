"""What the tagger is trained and judged on: the corpora, their shares and their licences."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from learning.ner.corpora import (
    Example,
    SpanFilter,
    gmb_filter,
    in_share,
    join_handles,
    keep_plain,
    keep_sec,
    read_bio,
    sentence_key,
    to_example,
)
from learning.ner.synthetic import write_examples

GMB_SHARE: Final = 0.16
SYNTHETIC: Final = 7000
HELD_OUT: Final = 0.15


@dataclass(frozen=True)
class Corpus:
    """A corpus and its licence.

    Attributes:
        name: Folder of the data collection.
        licence: Short name of the licence.
        attribution: Whom to name, as the licence asks.
        files: Files used for training.
    """

    name: str
    licence: str
    attribution: str
    files: tuple[str, ...]


_CROSSNER = "Liu et al., CrossNER (AAAI 2021); sentences from Wikipedia contributors"
CORPORA: Final = (
    Corpus(
        "wnut17",
        "CC BY 4.0",
        "Derczynski et al., WNUT2017 Shared Task on Novel and Emerging Entity Recognition",
        ("train", "dev"),
    ),
    Corpus(
        "btc",
        "CC BY 4.0",
        "Derczynski, Bontcheva, Roberts, Broad Twitter Corpus (COLING 2016)",
        ("train", "dev"),
    ),
    Corpus(
        "wikigold",
        "CC BY 4.0",
        "Balasuriya et al., Named Entity Recognition in Wikipedia (2009)",
        ("all",),
    ),
    Corpus(
        "sec_filings",
        "CC BY 3.0",
        "Salinas Alvarado, Verspoor, Baldwin, Domain Adaption of NER for Credit Risk (2015)",
        ("train",),
    ),
    *(
        Corpus(f"crossner_{d}", "MIT; text CC BY-SA 3.0", _CROSSNER, ("train", "dev"))
        for d in ("ai", "literature", "music", "politics", "science")
    ),
    Corpus(
        "gmb",
        "ODbL 1.0 / DbCL 1.0; text public domain",
        "Bos et al., Groningen Meaning Bank",
        ("all",),
    ),
)
"""Corpora that may be trained on. Research-only and non-commercial sets are not among them."""

REPEAT: Final = {"wnut17": 2}
"""Corpora read more than once per pass: small, and of the hardest kind."""
DEV_SHARE: Final = {"wnut17": 0.06, "btc": 0.03, "sec_filings": 0.05}


@dataclass(frozen=True)
class Dataset:
    """Training and validation sentences; the test sets are ``learning.ner.evaluate``'s."""

    train: list[Example]
    validation: list[Example]
    counts: dict[str, int]
    sha256: dict[str, str]


def held_out(name: str, key: str) -> bool:
    """Whether a sentence of a corpus without a test set of its own is kept for testing."""
    return name == "wikigold" and in_share(f"wikigold {key}", HELD_OUT)


def _keep(corpus: Corpus, path: Path) -> SpanFilter:
    if corpus.name == "gmb":
        return gmb_filter(read_bio(path))
    return keep_sec if corpus.name == "sec_filings" else keep_plain


def load_dataset(data: Path, seed: int) -> Dataset:
    """Read, map and split all corpora under ``data``, and add the made-up sentences.

    Raises:
        FileNotFoundError: A corpus is absent.
    """
    train: list[Example] = []
    validation: list[Example] = []
    counts: dict[str, int] = {}
    hashes: dict[str, str] = {}
    for corpus in CORPORA:
        before = len(train)
        for file in corpus.files:
            path = data / corpus.name / f"{file}.bio.gz"
            hashes[f"{corpus.name}/{file}"] = hashlib.sha256(path.read_bytes()).hexdigest()
            keep = _keep(corpus, path)
            for sentence in read_bio(path):
                key = sentence_key(sentence)
                if held_out(corpus.name, key):
                    continue
                if corpus.name == "gmb" and not in_share(key, GMB_SHARE):
                    continue
                if corpus.name == "btc":
                    sentence = join_handles(sentence)
                example = to_example(sentence, keep)
                if in_share(f"validation {key}", DEV_SHARE.get(corpus.name, 0.0)):
                    validation.append(example)
                else:
                    train.extend([example] * REPEAT.get(corpus.name, 1))
        counts[corpus.name] = len(train) - before
    synthetic = write_examples(data, SYNTHETIC, seed)
    counts["synthetic"] = len(synthetic)
    return Dataset(train + synthetic, validation, counts, hashes)
