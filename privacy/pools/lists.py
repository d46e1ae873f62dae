"""Reads the packaged source lists; the only place that knows their file names."""

import gzip
from collections.abc import Iterable
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Final

from privacy.embedding.base import fold

FOLDER: Final = Path(__file__).parent / "sources"
GIVEN_LISTS: Final = ("census_given_female", "census_given_male", "world_given")
FAMILY_LISTS: Final = ("census_family", "world_family")
ORG_LISTS: Final = ("orgs_sp500", "orgs_us_listed", "orgs_presidio", "universities")
ALL_LISTS: Final = (
    *GIVEN_LISTS,
    *FAMILY_LISTS,
    *ORG_LISTS,
    "countries",
    "us_states",
    "us_counties",
    "regions",
    "cities",
    "common_words",
)


@cache
def read_list(name: str) -> tuple[str, ...]:
    """Return the lines of one source list, most frequent (or largest) first.

    Raises:
        FileNotFoundError: No such list is packaged.
    """
    path = list_path(name)
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = raw.decode("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip())


def list_path(name: str) -> Path:
    """Return the file of one source list, packed or plain."""
    plain = FOLDER / f"{name}.txt"
    return plain if plain.is_file() else FOLDER / f"{name}.txt.gz"


@cache
def folded(names: tuple[str, ...]) -> dict[str, int]:
    """Map folded names (see `fold`) to their first position in the given lists, joined in order."""
    ranks: dict[str, int] = {}
    for name in names:
        for rank, line in enumerate(read_list(name)):
            key = fold(line)
            ranks[key] = min(rank, ranks.get(key, rank))
    return ranks


def interleaved(names: Iterable[str]) -> list[str]:
    """Return the entries of several lists in turn: the first of each, the second of each, ..."""
    rows = zip_longest(*(read_list(name) for name in names))
    return list(dict.fromkeys(entry for row in rows for entry in row if entry is not None))


def given_ranks() -> dict[str, int]:
    """Folded given names and their rank."""
    return folded(GIVEN_LISTS)


def family_ranks() -> dict[str, int]:
    """Folded family names and their rank."""
    return folded(FAMILY_LISTS)


def common_words() -> dict[str, int]:
    """English words that also stand in lower case in running text."""
    return folded(("common_words",))


def place_names() -> dict[str, int]:
    """Every country, state, region and city known, folded."""
    return folded(("countries", "us_states", "regions", "cities"))
