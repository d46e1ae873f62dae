"""Two real processes under torchrun with gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from parallel_worker import Model, run

WORKER = Path(__file__).with_name("parallel_worker.py")


def start(folder: Path, method: str, rate: float) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--standalone", str(WORKER), str(folder), method, str(rate)]
    root = Path(__file__).parents[3]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=180, check=False
    )


def torchrun(folder: Path, method: str, rate: float) -> list[dict[str, Any]]:
    done = start(folder, method, rate)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def private_reports(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return torchrun(tmp_path_factory.mktemp("private"), "bitfit", 1.0)


def test_two_processes_train_the_model_that_one_trains(
    private_reports: list[dict[str, Any]],
) -> None:
    """q = 1 makes the sample certain, and the noise is all ones: once per step, not once per rank."""
    first, second = private_reports
    assert first["values"] == second["values"]
    alone = run("bitfit", 1.0)
    assert first["steps"] == alone.account.steps == 4
    for name, value in alone.values.items():
        assert first["values"][name] == pytest.approx(value.tolist(), rel=1e-4, abs=1e-6), name
    assert alone.bytes_reduced == 0


def test_only_clipped_bias_sums_are_exchanged(private_reports: list[dict[str, Any]]) -> None:
    model = Model()
    biases = sum(p.numel() for n, p in model.named_parameters() if n.endswith("bias"))
    everything = sum(p.numel() for p in model.parameters())
    for report in private_reports:
        assert report["bytes"] == 4 * 4 * biases  # 4 steps, fp32
    assert 4 * 4 * everything / private_reports[0]["bytes"] > 30


def test_empty_local_batches_keep_the_processes_together(tmp_path: Path) -> None:
    """At this rate most local batches hold no record; every rank still takes every step."""
    first, second = torchrun(tmp_path, "bitfit", 0.02)
    assert first["values"] == second["values"]
    assert first["steps"] == second["steps"] == 4
    assert (tmp_path / "checkpoints" / "checkpoint.pt").is_file()


def test_different_base_models_are_refused(tmp_path: Path) -> None:
    done = start(tmp_path, "different", 1.0)
    assert done.returncode != 0
    assert "different base models" in done.stderr
