"""The converted vectors: look-up, totality, determinism, damage."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.embedding import EmbeddingError, WordTable, WordVectors, angle, build_word_vectors
from privacy.embedding.subwords import buckets, fit, guess

WORDS = ["the", "paris", "london", "maria", "marie", "mario", "zürich", "zurich", "smith", "o'neil"]


def table(source: str = "test") -> WordTable:
    generator = np.random.Generator(np.random.PCG64(5))
    return WordTable(WORDS, generator.normal(size=(len(WORDS), 8)).astype(np.float32), source)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> WordVectors:
    folder = tmp_path_factory.mktemp("vectors")
    build_word_vectors(table(), folder)
    return WordVectors.load(folder)


def test_known_words_keep_their_direction_in_any_case(vectors: WordVectors) -> None:
    row = table().vectors[1]
    expected = row / np.linalg.norm(row)
    for name in ("paris", "Paris", "PARIS", " Paris, "):
        assert vectors.vector(name) == pytest.approx(expected, abs=2e-3)
    assert "paris" in vectors
    assert "madrid" not in vectors
    assert len(vectors) == len(WORDS)
    assert vectors.dimension == 8


def test_accents_fall_back_to_plain_letters_only_when_unknown(vectors: WordVectors) -> None:
    assert angle(vectors.vector("Zürich"), vectors.vector("zurich")) > 0.1
    assert angle(vectors.vector("Mário"), vectors.vector("mario")) == pytest.approx(0.0, abs=1e-6)


def test_a_name_of_several_words_is_the_mean_of_unit_vectors(vectors: WordVectors) -> None:
    both = vectors.vector("maria") + vectors.vector("smith")
    mean = both / np.linalg.norm(both)
    assert vectors.vector("Maria  Smith") == pytest.approx(mean)
    assert vectors.vector("Maria-Smith") == pytest.approx(mean)


def test_unknown_names_get_a_vector_from_their_letters(vectors: WordVectors) -> None:
    guessed = vectors.vector("Mariette")
    assert np.linalg.norm(guessed) == pytest.approx(1.0)
    assert angle(guessed, vectors.vector("marie")) < angle(guessed, vectors.vector("london"))


@pytest.mark.parametrize("name", ["", " ", "...", "李明", "42", "--", "\x00"])
def test_what_has_no_letters_and_is_unknown_is_the_zero_vector(
    vectors: WordVectors, name: str
) -> None:
    assert not vectors.vector(name).any()


@given(name=st.text())
@settings(max_examples=200)
def test_every_string_has_a_vector(vectors: WordVectors, name: str) -> None:
    length = float(np.linalg.norm(vectors.vector(name)))
    assert length == 0.0 or length == pytest.approx(1.0)
    assert np.array_equal(vectors.vector(name), vectors.vector(name))


def test_same_input_same_bytes_and_other_input_other_fingerprint(tmp_path: Path) -> None:
    first = build_word_vectors(table(), tmp_path / "a", ["maria"])
    second = build_word_vectors(table(), tmp_path / "b", ["maria"])
    assert first == second
    for name in ("index.npy", "vectors.npy", "subwords.npy", "manifest.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert build_word_vectors(table("other"), tmp_path / "c", ["maria"]) != first
    assert build_word_vectors(table(), tmp_path / "d", ["mario"]) != first


def test_progress_rises_to_one(tmp_path: Path) -> None:
    seen: list[float] = []
    build_word_vectors(table(), tmp_path, (), lambda step, share: seen.append(share))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize("name", ["index.npy", "vectors.npy", "subwords.npy"])
def test_damage_is_detected(tmp_path: Path, name: str) -> None:
    build_word_vectors(table(), tmp_path)
    raw = bytearray((tmp_path / name).read_bytes())
    raw[-1] ^= 1
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(EmbeddingError, match="damaged"):
        WordVectors.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(EmbeddingError, match="damaged"):
        WordVectors.load(tmp_path)


def test_a_missing_unreadable_or_foreign_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="not set up"):
        WordVectors.load(tmp_path)
    build_word_vectors(table(), tmp_path)
    manifest = tmp_path / "manifest.json"
    content = json.loads(manifest.read_text(encoding="utf-8"))
    for text, message in (
        ("{", "unreadable"),
        ("{}", "incomplete"),
        (json.dumps({**content, "format": 99}), "format"),
        (json.dumps({**content, "files": {"../x": ""}}), "format"),
    ):
        manifest.write_text(text, encoding="utf-8")
        with pytest.raises(EmbeddingError, match=message):
            WordVectors.load(tmp_path)


def test_an_empty_or_uneven_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="at least one"):
        build_word_vectors(WordTable([], np.zeros((0, 3)), "x"), tmp_path)
    with pytest.raises(EmbeddingError, match="as many"):
        build_word_vectors(WordTable(["a"], np.zeros((2, 3)), "x"), tmp_path)


def test_buckets_count_ngrams_of_the_marked_word() -> None:
    assert len(buckets("anna")) == (6 - 2) + (6 - 3) + (6 - 4)
    assert buckets("anna") == buckets("an-na1")
    assert buckets("123") == []
    assert all(0 <= bucket < 64 for bucket in buckets("anna", 64))


def test_the_fit_solves_the_ridge_regression() -> None:
    words = ["anna", "hanna", "joanna", "peter", "petra"]
    targets = np.random.Generator(np.random.PCG64(1)).normal(size=(5, 3))
    fitted = fit(words, targets, 256)
    shares = np.zeros((5, 256))
    for row, word in enumerate(words):
        for bucket in buckets(word, 256):
            shares[row, bucket] += 1.0 / len(buckets(word, 256))
    exact = np.linalg.solve(shares.T @ shares + 0.3 * np.eye(256), shares.T @ targets)
    assert fitted == pytest.approx(exact, abs=0.01 * float(np.abs(exact).max()))
    assert guess("", fitted) is None
