"""The names and the arithmetic of the benchmark's figures."""

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "bitfit.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bitfit_benchmark", SCRIPT)
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
