"""The names and the arithmetic of the benchmarks' figures."""

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load("bitfit")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_ratios_have_the_promised_names_and_values(bench: ModuleType) -> None:
    def row(opacus: float) -> dict[str, object]:
        methods = {name: {"seconds": 2.0, "peak": 4.0} for name in bench.METHODS}
        methods["bitfit"] = {"seconds": 1.0, "peak": 2.0}
        methods["dp_full_opacus"] = {"seconds": opacus, "peak": 8.0}
        return {"methods": methods}

    found = bench.ratios([row(4.0), row(16.0)], [])
    assert found["dp_bitfit_time_over_bitfit"] == pytest.approx(2.0)
    assert found["dp_bitfit_memory_over_bitfit"] == pytest.approx(2.0)
    # Geometric means, so that no shape counts for more than another.
    assert found["dp_full_opacus_time_over_dp_bitfit"] == pytest.approx(4.0)
    assert found["dp_full_opacus_memory_over_dp_bitfit"] == pytest.approx(2.0)
    failed = row(4.0)
    failed["methods"]["dp_full_opacus"] = {"failed": "no memory"}  # type: ignore[index]
    found = bench.ratios([failed], [])
    assert math.isnan(found["dp_full_opacus_time_over_dp_bitfit"])
    assert found["dp_bitfit_time_over_bitfit"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("ConvNeXt", ["equal", "-", "refused", "equal"]),
        ("Qwen3", ["refused", "equal", "equal", "equal"]),
        ("Swin", ["refused", "refused", "refused", "equal"]),
        ("ESM", ["equal", "-", "refused", "equal"]),
    ],
)
def test_architectures_are_equal_to_a_loop_or_refused(name: str, outcomes: list[str]) -> None:
    survey = load("bitfit_architectures")
    (architecture,) = (a for a in survey.ARCHITECTURES if a.name == name)
    found = survey.survey(architecture)
    assert [outcome["outcome"] for outcome in found.values()] == outcomes
    assert ("exclude" in found["bitfit"]) is bool(architecture.exclude)


def test_a_wrong_gradient_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = load("bitfit_architectures")
    loop = survey.by_a_loop
    monkeypatch.setattr(
        survey, "by_a_loop", lambda *given: {n: 1.00001 * g for n, g in loop(*given).items()}
    )
    (bert,) = (a for a in survey.ARCHITECTURES if a.name == "BERT")
    assert survey.survey(bert)["bitfit"]["outcome"] == "wrong"
