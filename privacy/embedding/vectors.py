"""The default embedding: memory-mapped word vectors with a subword fallback."""

import json
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from privacy.embedding import subwords
from privacy.embedding.base import compose
from privacy.embedding.build import FORMAT, INDEX, MANIFEST, SUBWORDS, VECTORS, word_hash
from privacy.embedding.glove import EmbeddingError, sha256_of

REBUILD: Final = "run `penname pools build` to make the word vectors again"


class WordVectors:
    """Vectors of names from the folder that `build_word_vectors` wrote.

    Thread-safe: nothing changes after loading.  The arrays stay on disk and are mapped into memory,
    so that processes share them and only the pages that are read count.
    """

    def __init__(
        self,
        index: NDArray[Any],
        rows: NDArray[Any],
        table: NDArray[Any],
        fingerprint: str,
    ) -> None:
        self._index = index
        self._rows = rows
        self._table = table
        self._fingerprint = fingerprint

    @classmethod
    def load(cls, folder: Path, verify: bool = True) -> "WordVectors":
        """Map the vectors in ``folder``; with ``verify`` every file's SHA-256 is checked.

        Raises:
            EmbeddingError: The folder is missing, incomplete, damaged or of another format.
        """
        manifest = _read_manifest(folder / MANIFEST)
        if verify:
            for name, expected in manifest["files"].items():
                path = folder / name
                if not path.is_file() or sha256_of(path) != expected:
                    raise EmbeddingError(f"the word vectors are damaged ({name}): {REBUILD}")
        index, rows, table = (
            np.load(folder / name, mmap_mode="r", allow_pickle=False)
            for name in (INDEX, VECTORS, SUBWORDS)
        )
        return cls(index, rows, table, str(manifest["fingerprint"]))

    @property
    def dimension(self) -> int:
        return int(self._rows.shape[1])

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, word: str) -> bool:
        return self.known(word) is not None

    def known(self, word: str) -> NDArray[np.float64] | None:
        """Return the stored vector of a lower-case word (shape (dimension,)), or None."""
        wanted = np.uint64(word_hash(word))
        row = int(np.searchsorted(self._index, wanted))
        if row == len(self._index) or self._index[row] != wanted:
            return None
        return np.asarray(self._rows[row], dtype=np.float64)

    def vector(self, name: str) -> NDArray[np.float64]:
        """Return the direction of any string: unit length, or zero when it has nothing to go by."""
        return compose(name, self.dimension, self.known, self._guess)

    def _guess(self, word: str) -> NDArray[np.float64] | None:
        return subwords.guess(word, self._table)


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EmbeddingError(f"the word vectors are not set up: {REBUILD}") from error
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"the word vectors' manifest is unreadable: {REBUILD}") from error
    wanted = {"files", "fingerprint", "format"}
    if not isinstance(manifest, dict) or not wanted <= manifest.keys():
        raise EmbeddingError(f"the word vectors' manifest is incomplete: {REBUILD}")
    if manifest["format"] != FORMAT or set(manifest["files"]) != {INDEX, VECTORS, SUBWORDS}:
        raise EmbeddingError(f"the word vectors have another format than {FORMAT}: {REBUILD}")
    return cast(dict[str, Any], manifest)
