"""A worker's count of steps: taken over from the one before it, never above what is reserved."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest

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
