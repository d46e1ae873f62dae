"""Constrained decoding against exhaustive search."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.detection.ner.decode import Decoder, log_softmax

LABELS = ["O", "S-PERSON", "B-PERSON", "E-PERSON", "I-PERSON", "S-ORG", "B-ORG", "E-ORG", "I-ORG"]


def allowed(labels: list[str]) -> bool:
    """The BIOES rules, written independently: an entity is B I* E or S, of one type."""
    open_type = None
    for label in labels:
        prefix, _, kind = label.partition("-")
        if open_type is None:
            if prefix in ("I", "E"):
                return False
            open_type = kind if prefix == "B" else None
        else:
            if prefix not in ("I", "E") or kind != open_type:
                return False
            open_type = None if prefix == "E" else open_type
    return open_type is None


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_finds_the_best_allowed_sequence(seed: int, count: int) -> None:
    decoder = Decoder(LABELS)
    scores = np.random.default_rng(seed).normal(size=(count, len(LABELS)))
    path = decoder.best_path(scores)
    best = max(
        (sum(scores[i, label] for i, label in enumerate(candidate)), candidate)
        for candidate in product(range(len(LABELS)), repeat=count)
        if allowed([LABELS[label] for label in candidate])
    )
    assert tuple(path) == best[1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 200))
def test_long_sequences_are_allowed_and_entities_are_whole(seed: int, count: int) -> None:
    decoder = Decoder(LABELS)
    path = decoder.best_path(np.random.default_rng(seed).normal(scale=3, size=(count, len(LABELS))))
    labels = [LABELS[index] for index in path]
    assert allowed(labels)
    covered = [False] * count
    for start, end, kind in decoder.entities(path):
        assert all(label.endswith(f"-{kind}") for label in labels[start:end])
        covered[start:end] = [True] * (end - start)
    assert covered == [label != "O" for label in labels]


def test_adjacent_entities_stay_apart() -> None:
    decoder = Decoder(LABELS)
    path = [LABELS.index(label) for label in ("B-PERSON", "E-PERSON", "S-PERSON", "O", "S-ORG")]
    assert decoder.entities(path) == [(0, 2, "PERSON"), (2, 3, "PERSON"), (4, 5, "ORG")]


def test_no_words_no_path() -> None:
    decoder = Decoder(LABELS)
    assert len(decoder.best_path(np.zeros((0, len(LABELS))))) == 0


@pytest.mark.parametrize("labels", [["S-PERSON"], ["O", "X-PERSON"], ["O", "B-"], ["O", "O-ORG"]])
def test_refuses_labels_that_are_not_bioes(labels: list[str]) -> None:
    with pytest.raises(ValueError, match="labels must be O and"):
        Decoder(labels)


def test_log_softmax_sums_to_one_for_large_scores() -> None:
    result = log_softmax(np.array([[1000.0, 1000.0], [-5.0, 3.0]], dtype=np.float32))
    assert np.allclose(np.exp(result).sum(axis=1), 1.0)
    assert np.allclose(result[0], np.log(0.5))
