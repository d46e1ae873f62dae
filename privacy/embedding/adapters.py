"""Embeddings from files of the user's choice: gensim KeyedVectors and sentence-transformers."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy.embedding.base import compose
from privacy.embedding.geometry import unit
from privacy.embedding.glove import EmbeddingError, sha256_of


class KeyedVectorsEmbedding:
    """Word2Vec, fastText or GloVe vectors in a file that gensim reads.

    Formats by name: ``.bin`` is the binary word2vec format, ``.kv`` gensim's own, anything else the
    text format (with or without the header line of counts).  Words are looked up as written in
    lower case; unknown ones have no subwords here and count as the zero vector.
    """

    def __init__(self, path: Path) -> None:
        """Load the file.  Raises EmbeddingError when it is missing or gensim cannot read it."""
        if not path.is_file():
            raise EmbeddingError(f"no word vectors at {path}: give the path of an existing file")
        self._vectors = _load_keyed(path)
        self._fingerprint = sha256_of(path)

    @property
    def dimension(self) -> int:
        return int(self._vectors.vector_size)

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def vector(self, name: str) -> NDArray[np.float64]:
        """Return the direction of ``name`` (shape (dimension,)), zero when no word is known."""
        return compose(name, self.dimension, self._known, lambda word: None)

    def _known(self, word: str) -> NDArray[np.float64] | None:
        if word not in self._vectors.key_to_index:
            return None
        return np.asarray(self._vectors.get_vector(word), dtype=np.float64)


class EncoderEmbedding:
    """Any sentence encoder, for example one of sentence-transformers.

    Args:
        encode: Maps a list of n texts to vectors of shape (n, d).
        identity: Names the encoder and its weights; two encoders must never share it.
    """

    def __init__(self, encode: Callable[[list[str]], Any], identity: str) -> None:
        self._encode = encode
        self._dimension = len(np.asarray(encode(["name"]))[0])
        self._fingerprint = hashlib.sha256(identity.encode("utf-8")).hexdigest()

    @classmethod
    def sentence_transformer(cls, path: Path) -> "EncoderEmbedding":
        """Load a sentence-transformers model from a folder; nothing is fetched."""
        if not path.is_dir():
            raise EmbeddingError(f"no sentence encoder at {path}: give the folder of a model")
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(path), device="cpu", local_files_only=True)
        weights = sorted([*path.rglob("*.safetensors"), *path.rglob("*.bin")])
        identity = " ".join(sha256_of(file) for file in weights)
        return cls(lambda texts: model.encode(texts, show_progress_bar=False), identity)

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def vector(self, name: str) -> NDArray[np.float64]:
        """Return the direction of ``name`` (shape (dimension,)), zero for white space alone."""
        if not name.strip():
            return np.zeros(self._dimension)
        return unit(np.asarray(self._encode([name]))[0])


def _load_keyed(path: Path) -> Any:
    from gensim.models import KeyedVectors

    if path.suffix == ".kv":
        return KeyedVectors.load(str(path), mmap="r")
    try:
        if path.suffix == ".bin":
            return KeyedVectors.load_word2vec_format(str(path), binary=True)
        words, rows = _read_text(path)
    except (ValueError, EOFError, UnicodeDecodeError) as error:
        raise EmbeddingError(
            f"{path.name} is not a word vector file that gensim reads: use .bin for binary "
            "word2vec, .kv for gensim's own format, .txt or .vec for text"
        ) from error
    vectors = KeyedVectors(vector_size=rows.shape[1])
    vectors.add_vectors(words, rows)
    return vectors


def _read_text(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """Read "word number number ..." lines; a first line of two whole numbers is a header.

    Raises:
        ValueError: A field is no number, or lines differ in length.
    """
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            word, *fields = line.rstrip().split(" ")
            if number == 0 and len(fields) == 1 and word.isdigit() and fields[0].isdigit():
                continue
            words.append(word)
            rows.append(np.array(fields, dtype=np.float32))
    if not rows:
        raise ValueError("no vectors")
    return words, np.stack(rows)
