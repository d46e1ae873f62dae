"""A worker's count of steps: taken over from the one before it, never above what is reserved."""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from learning import worker
from learning.bitfit import PrivacyError
from learning.worker import Folder


def prepared(path: Path, taken: list[int], **spec: Any) -> Path:
    told = {"sizes": [1000], "reserved": [1000], "lease_seconds": 5.0, **spec}
    (path / "spec.json").write_text(json.dumps(told))
    (path / "taken.json").write_text(json.dumps(taken))
    return path


def test_steps_that_another_worker_took_meanwhile_are_counted_on(tmp_path: Path) -> None:
    path = prepared(tmp_path, [99])
    other = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(other, fcntl.LOCK_EX)
    folder = Folder(path)
    (path / "taken.json").write_text("[101]")
    os.close(other)
    assert folder.lock()
    folder.take(101)
    assert json.loads((path / "taken.json").read_text()) == [102]


def test_no_step_is_taken_that_is_not_reserved(tmp_path: Path) -> None:
    folder = Folder(prepared(tmp_path, [4], reserved=[5]))
    assert folder.lock()
    folder.take(2)
    with pytest.raises(RuntimeError, match="reserved"):
        folder.take(3)
    assert json.loads((tmp_path / "taken.json").read_text()) == [5]


@pytest.mark.parametrize("jump", [-7200.0, 7200.0])
def test_a_lease_is_measured_by_a_clock_that_nobody_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    lease = tmp_path / "lease"
    lease.touch()
    now = [1000.0]
    monkeypatch.setattr(worker, "_now", lambda: now[0])
    monkeypatch.setattr(worker.threading.Thread, "start", lambda _thread: None)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    stop = worker.Stop(lease, 10.0)
    wall = time.time()
    monkeypatch.setattr(worker.time, "time", lambda: wall + jump)
    assert not stop
    now[0] += 9
    os.utime(lease, (wall + jump, wall + jump))  # renewed under the new time
    assert not stop
    now[0] += 9
    assert not stop
    now[0] += 2
    assert stop  # nobody renewed it
    late = tmp_path / "late"
    late.touch()
    os.utime(late, (wall + jump - 60, wall + jump - 60))
    assert worker.Stop(late, 10.0)  # over before the worker began


def test_what_another_process_refuses_ends_the_job_and_what_it_meets_is_told(
    tmp_path: Path,
) -> None:
    worker._report(ValueError("a row"), tmp_path, 1)
    assert not (tmp_path / "result.json").exists()  # worth another try
    told = (tmp_path / "events.jsonl").read_text()
    assert "Process 1 met ValueError" in told and "a row" not in told
    refused = PrivacyError("an example's loss changes with the others")
    assert worker._report(refused, tmp_path, 1) == worker.FAILED
    # Rank 0 sees a closed connection, and leaves what the other one said.
    worker._report(RuntimeError("connection closed"), tmp_path, 0)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result == {"error": "PrivacyError: an example's loss changes with the others"}
