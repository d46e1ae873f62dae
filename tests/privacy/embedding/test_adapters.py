"""Vectors from files of the user's choice."""

from pathlib import Path

import numpy as np
import pytest

from privacy.embedding import EmbeddingError, EncoderEmbedding, KeyedVectorsEmbedding

ROWS = {"paris": [1.0, 0.0, 0.0], "rome": [0.0, 2.0, 0.0], "maria": [0.0, 0.0, -3.0]}


def write_text(path: Path, header: bool) -> None:
    lines = [f"{len(ROWS)} 3"] if header else []
    lines += [" ".join([word, *map(str, row)]) for word, row in ROWS.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("header", [True, False])
def test_text_vectors_with_and_without_header(tmp_path: Path, header: bool) -> None:
    path = tmp_path / "vectors.txt"
    write_text(path, header)
    embedding = KeyedVectorsEmbedding(path)
    assert embedding.dimension == 3
    assert embedding.vector("Rome").tolist() == [0.0, 1.0, 0.0]
    half = 1.0 / np.sqrt(2.0)
    assert embedding.vector("Paris Rome").tolist() == pytest.approx([half, half, 0.0])
    assert not embedding.vector("unknown").any()
    assert len(embedding.fingerprint) == 64


def test_binary_and_gensim_files_give_the_same_vectors(tmp_path: Path) -> None:
    from gensim.models import KeyedVectors

    write_text(tmp_path / "vectors.txt", True)
    loaded = KeyedVectors.load_word2vec_format(str(tmp_path / "vectors.txt"))
    loaded.save_word2vec_format(str(tmp_path / "vectors.bin"), binary=True)
    loaded.save(str(tmp_path / "vectors.kv"))
    for name in ("vectors.bin", "vectors.kv"):
        assert KeyedVectorsEmbedding(tmp_path / name).vector("maria").tolist() == [0.0, 0.0, -1.0]


def test_missing_and_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="existing file"):
        KeyedVectorsEmbedding(tmp_path / "none.txt")
    (tmp_path / "bad.txt").write_text("paris 1.0 x y\nrome 1.0 0.0 z\n", encoding="utf-8")
    with pytest.raises(EmbeddingError, match="not a word vector file"):
        KeyedVectorsEmbedding(tmp_path / "bad.txt")
    with pytest.raises(EmbeddingError, match="folder of a model"):
        EncoderEmbedding.sentence_transformer(tmp_path / "none")


def test_any_encoder_will_do() -> None:
    embedding = EncoderEmbedding(lambda texts: [[len(text), 1.0] for text in texts], "lengths-1")
    assert embedding.dimension == 2
    assert embedding.vector("abc").tolist() == pytest.approx([3 / np.sqrt(10), 1 / np.sqrt(10)])
    assert not embedding.vector("  ").any()
    assert embedding.fingerprint != EncoderEmbedding(lambda t: [[1.0]], "other").fingerprint
