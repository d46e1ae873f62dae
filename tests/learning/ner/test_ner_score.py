"""Overlap and exact figures."""

import pytest

from learning.ner.evaluate import TestSet, evaluate
from learning.ner.score import Counts, count
from privacy.types import Span


def test_overlap_and_exact() -> None:
    gold = [(0, 4, "PERSON"), (10, 14, "ORG"), (20, 22, "LOC")]
    found = [(0, 4, "PERSON"), (12, 16, "LOC"), (30, 31, "ORG")]
    counts = count(gold, found)
    assert counts == Counts(gold=3, found=3, touched=2, justified=2, exact=1)
    assert counts.recall == pytest.approx(2 / 3)
    assert counts.f1 == pytest.approx(1 / 3)


def test_nothing_to_find() -> None:
    assert count([], []).summary() == {
        "overlap_recall": 0.0,
        "overlap_precision": 0.0,
        "exact_f1": 0.0,
        "gold": 0,
    }


def test_touching_borders_do_not_overlap() -> None:
    assert count([(0, 4, "PERSON")], [(4, 8, "PERSON")]).touched == 0


class _Fixed:
    def tag(self, texts: object) -> list[list[Span]]:
        return [[Span(0, 4, "ORG", 0.9, "x"), Span(8, 9, "LOC", 0.9, "x")]]


def test_a_name_of_the_wrong_type_counts_as_found() -> None:
    test = TestSet("t", ("Ilse is a b",), (((0, 4, "PERSON"),),))
    figures = evaluate(_Fixed(), test)
    assert figures["PERSON"]["overlap_recall"] == 1.0
    assert figures["PERSON"]["exact_f1"] == 0.0
    assert figures["ALL"]["overlap_precision"] == 0.5
    assert figures["ORG"]["overlap_precision"] == 1.0
    assert figures["LOC"]["overlap_precision"] == 0.0
