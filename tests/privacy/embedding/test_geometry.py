"""The angular distance is a metric; 1 - cos is not (DESIGN 3.1)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.embedding import angle, angles, chord, cosines, unit, unit_rows

VECTORS = st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3).map(lambda v: unit(np.array(v)))


@given(VECTORS, VECTORS, VECTORS)
def test_both_distances_are_metrics_with_the_zero_vector_included(
    a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> None:
    for distance in (angle, chord):
        assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9
        assert distance(a, b) == distance(b, a)
        assert distance(a, a) == 0.0


def test_one_minus_cosine_violates_the_triangle_inequality() -> None:
    turned = [np.array([np.cos(t), np.sin(t)]) for t in np.radians([0.0, 30.0, 60.0])]
    steps = [1.0 - turned[i] @ turned[j] for i, j in ((0, 1), (1, 2), (0, 2))]
    assert steps[2] == pytest.approx(0.5)
    assert steps[2] > 1.8 * (steps[0] + steps[1])


@given(VECTORS, VECTORS)
def test_one_minus_cosine_is_half_the_squared_chord(a: np.ndarray, b: np.ndarray) -> None:
    if a.any() and b.any():
        assert 1.0 - a @ b == pytest.approx(chord(a, b) ** 2 / 2.0, abs=1e-12)


def test_angle_is_exact_for_close_vectors_where_arccos_is_not() -> None:
    a = np.array([1.0, 0.0])
    b = np.array([np.cos(1e-9), np.sin(1e-9)])
    assert angle(a, b) == pytest.approx(1e-9 / np.pi, rel=1e-6)
    assert angle(a, -a) == 1.0


def test_zero_is_equidistant_from_everything() -> None:
    rows = unit_rows(np.array([[1.0, 2.0], [-3.0, 1.0], [0.0, 0.0]]))
    zero = np.zeros(2)
    assert angles(rows, zero).tolist() == [0.5, 0.5, 0.5]
    assert cosines(rows, zero).tolist() == [0.0, 0.0, 0.0]
    assert [angle(row, zero) for row in rows] == [0.5, 0.5, 0.0]
    assert [chord(row, zero) for row in rows] == pytest.approx([1.0, 1.0, 0.0])


def test_unit_treats_tiny_and_non_finite_vectors_as_zero() -> None:
    for vector in ([0.0, 1e-12], [np.inf, 1.0], [np.nan, 1.0]):
        assert not unit(vector).any()
        assert not unit_rows([vector]).any()
    assert np.linalg.norm(unit([3.0, 4.0])) == pytest.approx(1.0)
