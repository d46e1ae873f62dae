"""Rebuild the word lists of this folder from raw sources.

Run as ``python -m privacy.detection.data.build_lists --source DIR``, where DIR holds one folder per
source (see README.md beside this file for names and licences). Not used at run time.
"""

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
GIVEN_LIMIT = 4275
FAMILY_LIMIT = 15000
COMMON_MINIMUM = 4
# Of all sightings that are not at the start of a sentence, this share must be in lower case.
LOWER_SHARE = 0.25

_TEXT_CORPORA = (
    "medquad/sample.jsonl.gz",
    "pubmedqa/labeled.jsonl.gz",
    "privacylens/main_data.jsonl.gz",
    "mmlu_law_med/professional_law_test.jsonl.gz",
    "mmlu_law_med/professional_medicine_test.jsonl.gz",
    "mmlu_law_med/jurisprudence_test.jsonl.gz",
    "mmlu_law_med/clinical_knowledge_test.jsonl.gz",
)
_BIO_CORPORA = ("sec_filings/train.bio.gz",)
_WORD = re.compile(r"(?<![\w'.@/-])[A-Za-z][a-z]+(?![\w@/-]|\.\w)")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\"“(]\s*)$")


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _texts(source: Path) -> Iterator[str]:
    for name in _TEXT_CORPORA:
        with gzip.open(source / name, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield from _strings(json.loads(line))
    for name in _BIO_CORPORA:
        with gzip.open(source / name, "rt", encoding="utf-8") as lines:
            tokens = (line.split("\t")[0].strip() for line in lines)
            yield " ".join(token or "\n" for token in tokens)


def count_cases(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    """Count words in lower case, and words capitalised in mid-sentence (keys in lower case)."""
    lower: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text in texts:
        for match in _WORD.finditer(text):
            word = match.group()
            if word.islower():
                lower[word] += 1
            elif not _SENTENCE_START.search(text, max(0, match.start() - 4), match.start()):
                capital[word.lower()] += 1
    return lower, capital


def _names(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [line.strip().casefold() for line in lines if line.strip()]


def _write(name: str, words: Iterable[str]) -> None:
    ordered = list(dict.fromkeys(words))
    raw = ("\n".join(ordered) + "\n").encode()
    (HERE / name).write_bytes(gzip.compress(raw, 9, mtime=0))


def main() -> None:
    """Write given_names.txt.gz, family_names.txt.gz and common_words.txt.gz."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    source: Path = parser.parse_args().source
    names = source / "gazetteers"
    female = _names(names / "us_census_first_names_female.txt.gz")
    male = _names(names / "us_census_first_names_male.txt.gz")
    world_given = _names(names / "world_forenames_romanized_cc0.txt.gz")
    world_family = _names(names / "world_surnames_romanized_cc0.txt.gz")
    _write("given_names.txt.gz", [*female[:GIVEN_LIMIT], *male, *world_given])
    family = _names(names / "us_census_surnames.txt.gz")[:FAMILY_LIMIT]
    _write("family_names.txt.gz", [*family, *world_family])
    lower, capital = count_cases(_texts(source))
    _write(
        "common_words.txt.gz",
        (
            word
            for word, count in lower.most_common()
            if count >= COMMON_MINIMUM and count >= LOWER_SHARE * (count + capital[word])
        ),
    )


if __name__ == "__main__":
    main()
