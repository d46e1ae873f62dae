"""The body that creates a job: no setting is dropped in silence."""

from typing import Any

import orjson
import pytest

from gateway.api.fine_tuning import service
from gateway.api.fine_tuning.service import parse_create
from gateway.errors import ApiError
from learning.rows import parse_rows


def body(**fields: Any) -> bytes:
    return orjson.dumps({"model": "m", "training_file": "file-1", **fields})


@pytest.mark.parametrize("inner", [{"epsilon": 1}, {"hyperparameters": {"epsilon": 1}}])
def test_settings_stand_under_the_methods_name(inner: dict[str, Any]) -> None:
    method = {"type": "dp_bitfit", "dp_bitfit": inner, "supervised": None}
    assert parse_create(body(method=method)).method.settings() == {"epsilon": 1}


@pytest.mark.parametrize("beside", [{"hyperparameters": {"epsilon": 1}}, {"ppft": {"epsilon": 1}}])
def test_settings_beside_it_are_refused(beside: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match="under the name of the type") as caught:
        parse_create(body(method={"type": "dp_bitfit", **beside}))
    assert (caught.value.status, caught.value.param) == (400, "method")


def test_settings_in_two_places_are_refused() -> None:
    method = {"type": "dp_bitfit", "dp_bitfit": {"epsilon": 1}}
    assert parse_create(body(hyperparameters={"epsilon": 2})).hyperparameters == {"epsilon": 2}
    with pytest.raises(ApiError, match="not in both"):
        parse_create(body(method=method, hyperparameters={"epsilon": 2}))


def test_labels_are_taken_without_the_white_space_around_them() -> None:
    rows = parse_rows(b'{"text": "x", "label": " good"}\n{"text": "y", "label": "bad "}\n')
    assert service._labels([" good ", "bad", "good"], rows, None) == ("good", "bad")
    turns = b'{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "%s"}]}\n'
    assert service._labels(["good"], parse_rows(turns % b" good "), None) == ("good",)
