"""The packaged word lists, read once and kept."""

import gzip
from functools import cache
from importlib import resources
from typing import Final

_PACKAGE: Final = "privacy.detection.data"


@cache
def read_words(name: str) -> frozenset[str]:
    """Return the words of one list of privacy/detection/data, casefolded.

    Raises:
        FileNotFoundError: There is no such list.
    """
    raw = resources.files(_PACKAGE).joinpath(name).read_bytes()
    return frozenset(gzip.decompress(raw).decode("utf-8").split())


def given_names() -> frozenset[str]:
    """Return the known given names, casefolded."""
    return read_words("given_names.txt.gz")


def family_names() -> frozenset[str]:
    """Return the known family names, casefolded."""
    return read_words("family_names.txt.gz")
