"""Deltas and checkpoints that are damaged, tampered with, or of another base; plans beyond arithmetic."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from learning.bitfit import (
    CheckpointError,
    FineTuning,
    Phase,
    PrivacySettings,
    TensorData,
    TrainResult,
    apply_delta,
    calibrate,
    train,
)
from learning.bitfit.delta import exact_fingerprint

WIDTH = 40


class Small(nn.Module):
    """A frozen layer without a bias, a buffer, and two biases that are one."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.again = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.again.bias = self.first.bias
        self.inner = nn.Linear(WIDTH, WIDTH, bias=False)
        self.register_buffer("scale", torch.ones(3))
        self.classifier = nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor) -> Any:
        x = self.inner(torch.tanh(self.again(torch.tanh(self.first(x)))))
        return SimpleNamespace(logits=self.classifier(x * self.scale.mean()))


def test_the_card_of_a_run_that_was_stopped_tells_the_steps_it_took() -> None:
    run = FineTuning(
        dataset_size=20,
        expected_batch=10,
        noise_multiplier=1.0,
        phases=(Phase(method="last_layer", epochs=2), Phase(epochs=2), Phase(epochs=1)),
    )
    data = TensorData({"x": torch.randn(20, WIDTH), "labels": torch.arange(20) % 2})
    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        return len(asked) > 6

    result = train(Small(), data, run, should_stop=should_stop)
    assert result.status == "stopped"
    assert [phase["steps"] for phase in result.card["phases"]] == [4, 2, 0]
    assert sum(entry["steps"] for entry in result.card["history"]) == 6


def trained(folder: Path | None = None, **more: Any) -> TrainResult:
    run = FineTuning(
        dataset_size=20,
        expected_batch=10,
        noise_multiplier=1.0,
        phases=(Phase(epochs=1),),
        **{"add_biases": True, **more},
    )
    data = TensorData({"x": torch.randn(20, WIDTH), "labels": torch.arange(20) % 2})
    return train(Small(), data, run, checkpoint_dir=folder)


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained().save(tmp_path_factory.mktemp("result"))


def test_a_delta_goes_on_its_base_and_off_again(delta: Path) -> None:
    base, before = Small(), Small().state_dict()
    apply_delta(base, delta).remove()
    assert all(torch.equal(value, before[name]) for name, value in base.state_dict().items())


@pytest.mark.parametrize("name", ["inner.weight", "first.weight", "scale"])
def test_a_base_that_differs_in_one_number_is_another_base(delta: Path, name: str) -> None:
    base = Small()
    with torch.no_grad():
        base.state_dict()[name].view(-1)[-1] += 1e-3
    with pytest.raises(CheckpointError, match="another base model"):
        apply_delta(base, delta)


def test_a_delta_from_before_the_exact_sum_is_still_read(delta: Path, tmp_path: Path) -> None:
    apply_delta(Small(), rewritten(delta, tmp_path, exact_base=None))


def rewritten(delta: Path, folder: Path, **changed: str | None) -> Path:
    with safe_open(delta, framework="pt") as file:
        metadata = {**file.metadata(), **changed}
    path = folder / "changed.safetensors"
    save_file(load_file(delta), path, {k: v for k, v in metadata.items() if v is not None})
    return path


DAMAGED: list[dict[str, str | None]] = [
    {"added": None},
    {"added": "["},
    {"added": "5"},
    {"added": json.dumps(["no.such.layer"])},
    {"card": None},
    {"card": "[]"},
    {"base": None},
    {"format": "another"},
]


@pytest.mark.parametrize("changed", DAMAGED, ids=str)
def test_a_tampered_description_is_told_and_leaves_the_base_alone(
    delta: Path, tmp_path: Path, changed: dict[str, str | None]
) -> None:
    base = Small()
    with pytest.raises(CheckpointError):
        apply_delta(base, rewritten(delta, tmp_path, **changed))
    assert base.state_dict().keys() == Small().state_dict().keys()


@pytest.mark.parametrize("keep", [0, 5, -8])
def test_a_file_cut_short_is_told(delta: Path, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.safetensors"
    path.write_bytes(delta.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="cannot be read"):
        apply_delta(Small(), path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        apply_delta(Small(), tmp_path / "absent.safetensors")


@pytest.mark.parametrize(
    "changed", [{"step": None}, {"unknown": 1}, {"values": {}}, {"phase": 3}], ids=str
)
def test_a_checkpoint_with_something_missing_is_told(tmp_path: Path, changed: Any) -> None:
    trained(tmp_path)
    path = tmp_path / "checkpoint.pt"
    state = {**torch.load(path, weights_only=True), **changed}
    torch.save({k: v for k, v in state.items() if v is not None}, path)
    with pytest.raises(CheckpointError, match="use a new folder"):
        trained(tmp_path)


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"), [(8, 1e-15, 40), (2, 1e-30, 4), (8, 0.1**25, 4)]
)
def test_a_delta_below_the_accounting_is_no_reason_for_enormous_noise(
    epsilon: float, delta: float, steps: int
) -> None:
    """It found sigma = 15,824 for the first: no tail was left to cut off."""
    with pytest.raises(ValueError, match="larger delta"):
        calibrate(epsilon, delta, [(0.256, steps), (0.256, 4)])


@pytest.mark.parametrize("bound", [1e-40, 1e38])
def test_a_clipping_norm_beyond_fp32_is_refused(bound: float) -> None:
    with pytest.raises(ValueError, match="max_grad_norm"):
        PrivacySettings(1.0, 1.0, bound)


def test_a_base_that_differs_in_an_imaginary_part_is_another() -> None:
    model = nn.Linear(2, 2)
    model.register_buffer("turns", torch.polar(torch.ones(3), torch.arange(3.0)))
    before = exact_fingerprint(model, ())
    model.turns = torch.conj_physical(model.turns)
    assert exact_fingerprint(model, ()) != before
