"""Methods: how they are found, and what DP-BiTFiT's plan promises."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from learning.methods import registry
from learning.methods.base import Facts, MethodError
from learning.methods.dp_bitfit import DpBitfit

KIND = DpBitfit()


@pytest.fixture(params=["BertModel", "LlamaForCausalLM"])
def facts(request: pytest.FixtureRequest, tmp_path: Path) -> Facts:
    config = {"architectures": [request.param]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return Facts(1000, ("a", "b"), 1e-5, tmp_path)


def test_a_plan_costs_what_was_asked_for_at_most(facts: Facts) -> None:
    plan = KIND.plan({"epsilon": 2.0, "batch_size": 50, "steps": 40}, facts)
    assert 1.9 < plan.epsilon <= 2.0 and plan.delta == 1e-5
    assert plan.epsilon < plan.shown["epsilon_replace_one"] < 2.2 * plan.epsilon
    assert [(e["rate"], e["steps"]) for e in plan.history] == [(0.05, 40)]
    assert plan.config["run"]["noise_multiplier"] == plan.history[0]["noise_multiplier"]
    assert plan.config["run"]["epsilon"] is None
    alone, twice = KIND.epsilon([plan.history], 1e-5), KIND.epsilon([plan.history] * 2, 1e-5)
    assert alone == plan.epsilon < twice < 2 * alone  # joint composition, not a sum
    assert KIND.epsilon([], 1e-5) == 0.0


@pytest.mark.parametrize(
    ("steps", "asked", "every"), [(1, None, 1), (18, None, 3), (400, None, 20), (400, 7, 7)]
)
def test_even_a_short_run_reports_its_metrics_on_the_way(
    facts: Facts, steps: int, asked: int | None, every: int
) -> None:
    plan = KIND.plan({"steps": steps, "checkpoint_every": asked or "auto"}, facts)
    assert plan.config["run"]["checkpoint_every"] == plan.shown["checkpoint_every"] == every


def test_an_encoder_trains_its_head_first(facts: Facts) -> None:
    plan = KIND.plan({"epsilon": 8.0}, facts)
    labels = [entry["label"] for entry in plan.history]
    causal = "Causal" in (facts.base / "config.json").read_text()
    assert labels == (["bitfit"] if causal else ["last_layer", "bitfit"])
    assert plan.config["run"]["add_biases"] is causal
    assert plan.epsilon <= 8.0


def test_delta_and_the_size_of_the_data_set(facts: Facts) -> None:
    assert KIND.plan({"dataset_size": 10**6, "steps": 9, "epsilon": 1.0}, facts).delta == 5e-7
    plan = KIND.plan(
        {"dataset_size": 2000, "batch_size": 100, "steps": 9, "delta": 1e-4, "epsilon": 2.0}, facts
    )
    assert plan.history[0]["rate"] == 0.05 and plan.delta == 1e-4
    assert math.isclose(plan.shown["batch_size"], 100)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0.01}, "delta"),
        ({"steps": 1, "n_epochs": 2}, None),
        ({"phases": [], "epsilon": 1}, "phases"),
        ({"phases": [{"steps": 1}], "steps": 2}, "steps"),
        ({"noise_multiplier": 0}, "noise_multiplier"),
        ({"private": False}, "private"),
        ({"labels": ["a", " "]}, "labels.1"),
        ({"labels": []}, "labels"),
        ({"epsilon": 1e-9, "steps": 100}, "epsilon"),
    ],
)
def test_faults_name_their_field(facts: Facts, given: dict[str, Any], field: str | None) -> None:
    with pytest.raises(MethodError) as caught:
        KIND.plan(given, facts)
    assert caught.value.field == field


def test_one_label_is_no_task(facts: Facts) -> None:
    if "Causal" not in (facts.base / "config.json").read_text():
        with pytest.raises(MethodError, match="two different labels"):
            KIND.plan({}, Facts(10, ("a",), 1e-5, facts.base))


def test_a_file_is_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_up.py").write_text("METHOD = 'here'\n")
    (tmp_path / "not_installed.py").write_text("import no_such_package_at_all\n")
    monkeypatch.setattr(
        registry.learning.methods, "__path__", [*registry.learning.methods.__path__, str(tmp_path)]
    )
    registry.method.cache_clear()
    assert registry.method("made_up") == "here"
    with pytest.raises(registry.UnknownMethod, match=r"no_such_package_at_all.*\[finetune\]"):
        registry.method("not_installed")
    for name in ("base", "registry", "_bitfit_run", "../rows", "supervised"):
        with pytest.raises(registry.UnknownMethod, match="there are: .*dp_bitfit"):
            registry.method(name)


@pytest.mark.parametrize("content", ["{", "[]", "null"])
def test_a_base_whose_configuration_is_damaged_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(MethodError, match="config.json is damaged"):
        KIND.reads(tmp_path)
    (tmp_path / "config.json").write_text('{"architectures": 5}')
    assert KIND.reads(tmp_path) == "labels"
