"""Inputs made to be slow: a megabyte of each must take a few seconds of CPU in the whole engine."""

import time

import pytest

from privacy.detection.engine import Detector
from privacy.detection.registry import default_recognizers

SIZE = 250_000
UNITS = [
    "1", "a@", "@", "aGVsbG8gd29ybGQ", "deadbeef", "a.", "12 ", "1-", "Ab ", "A", " ", "\n", "a:", "://", "(",
    "+1", "password=", "a-", "%40", "-----BEGIN PRIVATE KEY-----\n", "data:image/png;base64,", "Dr. ", "of & ",
    "eyJ", "1,000 ", "user: ", " dot at ", "strasse", "é", "e\u0301",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_cost_is_linear(unit: str) -> None:
    detector = Detector(default_recognizers(), None, cache_size=0)
    text = (unit * (SIZE // len(unit)))[:SIZE]
    begin = time.process_time()
    detector.detect([text])
    # A quarter of a megabyte; a quadratic pattern would take minutes. Wide for slow machines.
    assert time.process_time() - begin < 15
