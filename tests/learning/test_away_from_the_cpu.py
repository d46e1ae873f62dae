"""What runs on a GPU, on one or else on a simulated one.

In a process of its own: torch cannot unlearn the simulated device.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# The last two are ordinary tests, whose decoders and jobs the plugin puts on the device.
CHECKS = (
    "learning/bitfit/device_bitfit.py",
    "learning/ppft/device_ppft.py",
    "learning/ppft/test_ppft_server.py::test_a_streamed_answer_is_the_same",
    "learning/jobs/test_task_runs.py::test_a_run_is_resumed_saved_and_asked",
)


@pytest.mark.slow
def test_away_from_the_cpu() -> None:
    plugins = ("-p", "on_device", "-p", "no:cacheprovider")
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *(str(TESTS / check) for check in CHECKS)],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout
