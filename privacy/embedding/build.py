"""Converts a table of word vectors into the memory-mapped form that `WordVectors` loads.

Files: ``index.npy`` (uint64, sorted hashes of the words), ``vectors.npy`` (float16, unit rows in
the order of the index), ``subwords.npy`` (float16, n-gram table), ``manifest.json`` (SHA-256 each).

The fingerprint of an embedding names its source and its recipe, not its bytes: a rounding that
differs between two processors changes a vector in the fourth digit at most, which no guarantee
depends on.  The bytes are what the digests in the manifest are for.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy.embedding import subwords
from privacy.embedding.geometry import unit_rows
from privacy.embedding.glove import EmbeddingError, WordTable, sha256_of

FORMAT: Final = 1
INDEX: Final = "index.npy"
VECTORS: Final = "vectors.npy"
SUBWORDS: Final = "subwords.npy"
MANIFEST: Final = "manifest.json"
FREQUENT: Final = 30_000
"""So many of the most frequent words take part in the fit of the n-grams, names always."""

Progress = Callable[[str, float], None]


def quiet(step: str, share: float) -> None:
    """The progress callback that says nothing."""


def word_hash(word: str) -> int:
    """Return the 64-bit hash under which a word is found again."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def build_word_vectors(
    table: WordTable, out: Path, names: Collection[str] = (), progress: Progress = quiet
) -> str:
    """Write the converted vectors into the folder ``out`` and return their fingerprint.

    The same table and names give the same fingerprint, and on one machine the same bytes.

    Args:
        table: Words in order of falling frequency.
        names: Lower-case words that take part in the n-gram fit however rare they are.
        progress: Called with (step, share done in [0, 1]).

    Raises:
        EmbeddingError: No words, or the number of words and vectors differ.
    """
    if not table.words or len(table.words) != len(table.vectors):
        raise EmbeddingError("a table of word vectors needs as many vectors as words, at least one")
    out.mkdir(parents=True, exist_ok=True)
    progress("vectors", 0.0)
    hashes = np.array([word_hash(word) for word in table.words], dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    rows = unit_rows(table.vectors)
    save(out / INDEX, hashes[order])
    save(out / VECTORS, rows[order].astype(np.float16))
    progress("subwords", 0.3)
    chosen = _training_rows(table.words, frozenset(names))
    fitted = subwords.fit([table.words[row] for row in chosen], rows[chosen])
    save(out / SUBWORDS, fitted.astype(np.float16))
    progress("manifest", 0.95)
    fingerprint = recipe(table.source, names)
    _write_manifest(out, len(table.words), rows.shape[1], fingerprint)
    progress("done", 1.0)
    return fingerprint


def recipe(source: str, names: Collection[str]) -> str:
    """Return the fingerprint of vectors converted from ``source`` with these names."""
    settings = [FORMAT, FREQUENT, subwords.BUCKETS, subwords.RIDGE, subwords.ROUNDS]
    text = json.dumps([source, settings, sorted(set(names))])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def save(path: Path, array: NDArray[Any]) -> None:
    """Write an array so that readers see the old file or the whole new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "wb") as stream:
        np.save(stream, array, allow_pickle=False)
    _publish(temporary, path)


def write_text(path: Path, text: str) -> None:
    """Write a text so that readers see the old file or the whole new one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    _publish(temporary, path)


def _publish(temporary: str, path: Path) -> None:
    # Public vectors and names, to be read by every user of the machine.
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def _training_rows(words: list[str], names: frozenset[str]) -> list[int]:
    return [
        row
        for row, word in enumerate(words)
        if (row < FREQUENT or word in names)
        and word.isascii()
        and word.isalpha()
        and word.islower()
        and 3 <= len(word) <= 16
    ]


def _write_manifest(out: Path, words: int, dimension: int, fingerprint: str) -> None:
    content = {
        "format": FORMAT,
        "words": words,
        "dimension": dimension,
        "fingerprint": fingerprint,
        "files": {name: sha256_of(out / name) for name in (INDEX, VECTORS, SUBWORDS)},
    }
    write_text(out / MANIFEST, json.dumps(content, indent=2, sort_keys=True) + "\n")
