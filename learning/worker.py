"""``python -m learning.worker FOLDER``: runs one job that a gateway prepared in a folder.

Read: ``spec.json``, ``data.jsonl`` (removed as soon as it is in memory), ``public.jsonl``, and a lease
file whose modification time says that somebody still wants this run.  Written: ``taken.json`` before every
noisy step, ``events.jsonl``, the method's checkpoints, ``result.json`` at the end.  With several processes
this one is rank 0 and starts the others (`learning.group`): ``FOLDER RANK SIZE``, the size being the rows'.

No text of the data reaches standard output or error: an unexpected exception is reported by its type
and the places it passed, because its message may quote a row.

The exit status is for people; a gateway that did not start this process reads ``result.json``. Without
one the run died and is worth another try.
"""

import fcntl
import itertools
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

from learning.group import Group, join, rows_from_rank_0
from learning.methods.base import NO_ROWS, EventKind, Result, Work
from learning.methods.registry import method
from learning.rows import parse_rows

DONE: Final = 0
STOPPED: Final = 3
BUSY: Final = 4
FAILED: Final = 5
# By name: their messages speak of settings and models, never of rows.
_TOLD: Final = frozenset(
    {
        "PrivacyError",
        "CheckpointError",
        "MethodError",
        "UnknownMethod",
        "GroupError",
        "ArtefactError",
        "DatasetError",
        "DecoderError",
    }
)


class Folder:
    """The files of a job."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spec: Mapping[str, Any] = json.loads((path / "spec.json").read_text("utf-8"))
        self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self._events = os.open(path / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._taken = os.open(path / "taken.json", os.O_RDWR | os.O_CREAT, 0o600)
        self._ends = list(itertools.accumulate(self.spec["sizes"]))
        self._counts: list[int] = []

    def lock(self) -> bool:
        """Hold the folder against other workers until this process ends."""
        # A worker whose gateway died stops within its lease; it is waited for.
        deadline = time.monotonic() + 2 * float(self.spec["lease_seconds"])
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Only now: the worker before may have taken steps until it ended.
                raw = os.pread(self._taken, 1 << 16, 0)
                self._counts = json.loads(raw) if raw else [0] * len(self._ends)
                return True
            except OSError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.1)

    def rows(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def take_rows(self) -> bytes:
        """Read the training rows and remove them; none where the method exported instead."""
        if not self.spec["rows"]:
            return b""
        rows = self.rows("data.jsonl")
        (self.path / "data.jsonl").unlink()
        return rows

    def take(self, step: int) -> None:
        """Write down, durably, that step number ``step`` of the plan is being taken.

        Raises:
            RuntimeError: It is not reserved; the gateway looks what is missing and starts anew.
        """
        part = next(i for i, end in enumerate(self._ends) if step < end)
        if self._counts[part] >= self.spec["reserved"][part]:
            raise RuntimeError("no such step is reserved")
        self._counts[part] += 1
        # Counts only grow, so a shorter text never overwrites a longer one.
        os.pwrite(self._taken, json.dumps(self._counts).encode(), 0)
        os.fsync(self._taken)

    def emit(self, message: str, kind: EventKind, data: Mapping[str, Any]) -> None:
        """Append one report in a single write: a reader never sees half a line with a line break."""
        os.write(self._events, _line(message, kind, data))

    def finish(self, result: Mapping[str, Any]) -> None:
        draft = self.path / ".result.json"
        with draft.open("w", encoding="utf-8") as file:
            json.dump(dict(result), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path / "result.json")


def _line(message: str, kind: EventKind, data: Mapping[str, Any]) -> bytes:
    line = {"message": message, "kind": kind, "data": dict(data), "at": time.time()}
    return json.dumps(line).encode() + b"\n"


def _now() -> float:
    """Seconds since some moment, on Linux those that the machine slept included."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Stop:
    """Set by SIGTERM, or when nobody has renewed the lease for too long."""

    def __init__(self, lease: Path, seconds: float) -> None:
        self._lease, self._seconds = lease, seconds
        # From here on by a clock that nobody sets: a renewal is seen as a change.
        self._renewed = self._stamp()
        self._at = _now() - max(0.0, time.time() - (self._renewed or 0.0))
        self._event = threading.Event()
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        threading.Thread(target=self._watch, daemon=True).start()

    def __bool__(self) -> bool:
        return self._event.is_set() or self._expired()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._event.set()

    def _stamp(self) -> float | None:
        try:
            return self._lease.stat().st_mtime
        except OSError:
            return None

    def _expired(self) -> bool:
        stamp = self._stamp()
        if stamp is not None and stamp != self._renewed:
            self._renewed, self._at = stamp, _now()
        return stamp is None or _now() - self._at > self._seconds

    def _watch(self) -> None:
        while not self._expired():
            time.sleep(min(1.0, self._seconds / 4))
        self._event.set()
        # A step that takes longer than the lease would go on beside the next owner's run.
        time.sleep(self._seconds)
        os._exit(STOPPED)


def run(path: Path) -> int:
    """Run the job of a folder; returns the exit status."""
    os.umask(0o077)
    folder = Folder(path)
    if not folder.lock():
        return BUSY
    stop = Stop(path / folder.spec["lease"], float(folder.spec["lease_seconds"]))
    rows = folder.take_rows()
    group = Group(path, int(folder.spec["processes"]), rows)
    try:
        result = _run(_work(folder, rows, stop))
    finally:
        group.close()
    if result is None:
        folder.finish({"stopped": True})
        return STOPPED
    files = [str(file.relative_to(path)) for file in result.files]
    folder.finish({"files": files, "facts": dict(result.facts)})
    return DONE


def follow(path: Path, rank: int, size: int) -> int:
    """Run another rank than 0 of a job, whose rows of ``size`` bytes come through a pipe."""
    rows = rows_from_rank_0(size)
    spec = json.loads((path / "spec.json").read_text("utf-8"))
    _run(_told(spec, path, rows, rank))
    return DONE


def _run(work: Work) -> Result | None:
    threads = os.environ.get("PENNAME_JOB_THREADS")
    if threads:
        import torch

        torch.set_num_threads(int(threads))
    if work.processes > 1:
        join(work.folder, work.rank, work.processes)
    return method(work.method).run(work)


def _work(folder: Folder, rows: bytes, stop: Stop) -> Work:
    public = parse_rows(folder.rows("public.jsonl")) if folder.spec["public"] else None
    return replace(
        _told(folder.spec, folder.path, rows, 0),
        public=public,
        should_stop=lambda: bool(stop),
        take=folder.take,
        emit=folder.emit,
    )


def _told(spec: Mapping[str, Any], path: Path, rows: bytes, rank: int) -> Work:
    """What every rank is told; only rank 0 stops, takes steps and reports."""
    return Work(
        method=spec["method"],
        config=spec["config"],
        base=Path(spec["base"]),
        labels=tuple(spec["labels"]),
        rows=parse_rows(rows) if spec["rows"] else NO_ROWS,
        public=None,
        seed=int(spec["seed"]),
        folder=path,
        should_stop=lambda: False,
        take=lambda _step: None,
        emit=lambda _message, _kind, _data: None,
        rank=rank,
        processes=int(spec["processes"]),
        decoder=Path(spec["decoder"]) if spec["decoder"] else None,
    )


def _report(error: BaseException, path: Path, rank: int) -> int:
    """Say what went wrong without quoting data; returns the exit status."""
    name = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    places = "".join(f"  {frame.filename}:{frame.lineno} {frame.name}\n" for frame in frames)
    print(f"{name}\n{places}", file=sys.stderr, end="")
    if name not in _TOLD:
        last = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        _tell(path, f"Process {rank} met {name}{last}.")
        return 1
    print(str(error), file=sys.stderr)
    # Whichever rank it is: rank 0 would only see that another one is gone.
    (path / "result.json").write_text(json.dumps({"error": f"{name}: {error}"}), encoding="utf-8")
    return FAILED


def _tell(path: Path, message: str) -> None:
    with suppress(OSError), open(path / "events.jsonl", "ab") as file:
        file.write(_line(message, "message", {}))


def main() -> None:
    path, rank = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    # transformers imports scikit-learn where it is found, for something that no job uses: seconds.
    sys.modules.setdefault("sklearn", None)  # type: ignore[arg-type]
    try:
        status = follow(path, rank, int(sys.argv[3])) if rank else run(path)
    except Exception as error:
        status = _report(error, path, rank)
    sys.stdout.flush()
    sys.stderr.flush()
    # Libraries' threads must not delay the end of a run.
    os._exit(status)


if __name__ == "__main__":
    main()
