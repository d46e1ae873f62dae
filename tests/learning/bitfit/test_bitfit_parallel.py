"""Two real processes under torchrun with gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from parallel_worker import Model, run

Reports = list[dict[str, Any]]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    """What each of the two processes saw."""
    folder = tmp_path_factory.mktemp("parallel")
    worker = Path(__file__).with_name("parallel_worker.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--standalone", str(worker), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(worker.parents[3])}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (folder / "checkpoints" / "checkpoint.pt").is_file()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


def test_two_processes_train_the_model_that_one_trains(reports: Reports) -> None:
    """q = 1 makes the sample certain, and the noise is all ones: once per step, not once per rank."""
    first, second = (report["certain"] for report in reports)
    assert first["values"] == second["values"]
    alone = run(1.0)
    assert first["steps"] == alone.account.steps == 4
    for name, value in alone.values.items():
        assert first["values"][name] == pytest.approx(value.tolist(), rel=1e-4, abs=1e-6), name
    assert alone.bytes_reduced == 0


def test_only_clipped_bias_sums_are_exchanged(reports: Reports) -> None:
    model = Model()
    biases = sum(p.numel() for n, p in model.named_parameters() if n.endswith("bias"))
    everything = sum(p.numel() for p in model.parameters())
    for report in reports:
        assert report["certain"]["bytes"] == 4 * 4 * biases  # 4 steps, fp32
    assert 4 * 4 * everything / reports[0]["certain"]["bytes"] > 30


def test_empty_local_batches_keep_the_processes_together(reports: Reports) -> None:
    """At this rate most local batches hold no record; every rank still takes every step."""
    first, second = (report["rare"] for report in reports)
    assert first["values"] == second["values"]
    assert first["steps"] == second["steps"] == 4


def test_different_base_models_are_refused(reports: Reports) -> None:
    assert all("different base models" in report["different"] for report in reports)
