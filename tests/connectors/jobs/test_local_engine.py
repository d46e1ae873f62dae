"""The local engine: handles that any process can use, whole groups ended, nothing secret passed on."""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from connectors.jobs.base import worker_environment
from connectors.jobs.local import LocalEngine
from connectors.jobs.ray import RayEngine
from gateway.jobs.folder import JobFolder
from learning.worker import Folder


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Path]:
    """A job's folder that is locked, so that its worker waits."""
    spec = {
        "method": "dp_bitfit",
        "sizes": [3, 2],
        "reserved": [3, 2],
        "lease": "lease-1",
        "lease_seconds": 60,
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    with open(tmp_path / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield tmp_path


def ended(engine: LocalEngine, handle: str) -> None:
    deadline = time.monotonic() + 30
    while engine.poll(handle) == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_another_process_sees_and_ends_the_worker(
    waiting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENNAME_MASTER_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    engine = LocalEngine()
    handle = engine.submit("ftjob-1", 1, waiting)
    adopter = LocalEngine()
    assert engine.poll(handle) == adopter.poll(handle) == "running"
    process = psutil.Process(int(handle.split("/")[1]))
    assert os.getpgid(process.pid) == process.pid
    assert "secret" not in process.environ().values()
    adopter.stop(handle, force=True)
    ended(engine, handle)
    assert adopter.poll(handle) == "ended"
    engine.stop(handle)  # of what has ended: nothing to do
    assert engine._children == {}


def test_a_handle_of_another_host_or_another_process_is_nobody(waiting: Path) -> None:
    engine = LocalEngine()
    handle = engine.submit("ftjob-1", 1, waiting)
    host, pid, started = handle.split("/")
    for other in (f"elsewhere/{pid}/{started}", f"{host}/{pid}/1.00", f"{host}/x/y", ""):
        assert engine.poll(other) == "ended"
        engine.stop(other, force=True)
    assert engine.poll(handle) == "running"
    engine.stop(handle, force=True)
    ended(engine, handle)


def test_an_unexpected_fault_is_logged_without_its_message(tmp_path: Path) -> None:
    engine = LocalEngine()
    (tmp_path / "spec.json").write_text("{not json: Oberhuber}")
    handle = engine.submit("ftjob-1", 1, tmp_path)
    ended(engine, handle)
    log = engine.logs(handle, tmp_path)
    assert log.startswith("JSONDecodeError\n") and "worker.py:" in log
    assert "Oberhuber" not in log and "Expecting" not in log
    (report,), _ = JobFolder(tmp_path.parent, tmp_path.name).reports(0)
    assert re.fullmatch(r"Process 0 met JSONDecodeError at \w+\.py:\d+\.", report["message"])
    assert (tmp_path / "worker.log").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "result.json").exists()  # worth another try
    assert engine.logs(handle, tmp_path / "nowhere") == ""


def test_steps_are_written_down_by_part_and_never_forgotten(tmp_path: Path) -> None:
    spec = {"sizes": [3, 2], "reserved": [4, 3], "lease": "l", "lease_seconds": 1}
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    folder = Folder(tmp_path)
    assert folder.lock()
    for step in (0, 1, 2, 3):
        folder.take(step)
    os.close(folder._lock)  # its worker ended
    again = Folder(tmp_path)
    assert again.lock()
    for step in (2, 3, 4):  # from the checkpoint before the crash
        again.take(step)
    assert json.loads((tmp_path / "taken.json").read_text()) == [4, 3]


def test_the_environment_of_a_worker_is_a_short_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    environment = worker_environment(3)
    assert "AWS_SECRET_ACCESS_KEY" not in environment
    assert (environment["OMP_NUM_THREADS"], environment["HF_HUB_OFFLINE"]) == ("3", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert worker_environment(3)["CUDA_VISIBLE_DEVICES"] == "5"
    assert "CUDA_VISIBLE_DEVICES" not in worker_environment(3, here=False)  # another machine's


def test_ray_is_loaded_only_when_it_is_used() -> None:
    import sys

    RayEngine("http://127.0.0.1:1", gpus=0.5)
    assert not [name for name in sys.modules if name == "ray" or name.startswith("ray.")]


def test_a_job_that_ray_does_not_know_has_ended() -> None:
    class Restarted:
        """A cluster's client after the cluster was started anew; the words are Ray's."""

        def get_job_status(self, handle: str) -> None:
            told = "Request failed with status code 404: "
            raise RuntimeError(f"{told}Job {handle} does not exist." if handle else f"{told}404")

    engine = RayEngine("http://127.0.0.1:9")
    engine._client = Restarted()
    assert engine.poll("ftjob-1-1") == "ended"
    engine.stop("ftjob-1-1", force=True)
    assert engine.poll("") == "ended"  # its submission failed
