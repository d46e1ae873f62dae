"""The folder that a gateway and a worker share for one job.  Mode 0700; rows are there only for the
seconds that a worker needs to read them."""

import json
import operator
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_KEPT_AT_END: Final = ("worker.log", "events.jsonl")
_LINES_AT_ONCE: Final = 1 << 20


class JobFolder:
    """One job's folder.

    Args:
        root: Folder of all jobs.
    """

    def __init__(self, root: Path, job_id: str) -> None:
        self.path = root / job_id

    def prepare(
        self,
        spec: Mapping[str, Any],
        taken: Sequence[int],
        rows: bytes | None,
        public: bytes | None,
    ) -> None:
        """Write what a worker reads; what a former run left, checkpoints above all, stays."""
        self.make()
        (self.path / "result.json").unlink(missing_ok=True)
        left = self.taken(len(taken))
        # Left alone as a rule, since a worker that is about to end may still write it.
        if not (self.path / "taken.json").exists() or any(map(operator.lt, left, taken)):
            counts = [max(pair) for pair in zip(left, taken, strict=True)]
            self._write("taken.json", json.dumps(counts).encode())
        self._write("spec.json", json.dumps(dict(spec)).encode())
        self.touch(str(spec["lease"]))
        if public is not None:
            self._write("public.jsonl", public)
        if rows is not None:
            self._write("data.jsonl", rows)

    def make(self) -> None:
        """Make the folder, for its owner alone."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)

    def touch(self, lease: str) -> None:
        """Say that somebody still wants this run."""
        with suppress(FileNotFoundError):
            (self.path / lease).touch(mode=0o600)

    def lease(self) -> str:
        """Return the name of the lease file that the last worker was told."""
        return str(self._json("spec.json", {}).get("lease", "lease"))

    def taken(self, entries: int) -> list[int]:
        """Return how many steps of each part of the plan were taken, crashed runs included."""
        found: list[int] = self._json("taken.json", [])
        return found if len(found) == entries else [0] * entries

    def result(self) -> Mapping[str, Any] | None:
        """Return how the run ended; None when it has not, or died."""
        found: Mapping[str, Any] | None = self._json("result.json", None)
        return found

    def reports(self, offset: int) -> tuple[list[Mapping[str, Any]], int]:
        """Return the worker's whole lines from a byte offset on, and the offset after them."""
        try:
            with open(self.path / "events.jsonl", "rb") as file:
                file.seek(offset)
                block = file.read(_LINES_AT_ONCE)
        except FileNotFoundError:
            return [], offset
        whole = block[: block.rfind(b"\n") + 1]
        found = [_report(line) for line in whole.split(b"\n")]
        return [report for report in found if report is not None], offset + len(whole)

    def checkpoint_step(self) -> int:
        """Return the step of the last checkpoint, 0 when there is none."""
        if not (self.path / "checkpoint").is_dir():
            return 0
        step, offset = 0, 0
        while True:
            lines, after = self.reports(offset)
            for line in lines:
                if line["kind"] == "checkpoint":
                    step = int(line["data"]["step"])
            if after == offset:
                return step
            offset = after

    def size(self) -> int:
        """Return the bytes that the folder takes."""
        total = 0
        for folder, _, names in os.walk(self.path):
            for name in names:
                with suppress(FileNotFoundError):
                    total += os.lstat(os.path.join(folder, name)).st_size
        return total

    def read(self, name: str) -> bytes:
        """Return a file that the worker left.  Raises ValueError for a path out of the folder."""
        path = (self.path / name).resolve()
        if not path.is_relative_to(self.path.resolve()):
            raise ValueError("a result outside of the job's folder")
        return path.read_bytes()

    def remove_rows(self) -> None:
        """Remove training and validation rows."""
        for name in ("data.jsonl", "public.jsonl"):
            (self.path / name).unlink(missing_ok=True)
            (self.path / f".{name}").unlink(missing_ok=True)  # writing it was cut off

    def is_cleared(self) -> bool:
        """Say whether nothing is left but what stays at a job's end."""
        return all(item.name in _KEPT_AT_END for item in self.path.iterdir())

    def clear(self) -> None:
        """Remove everything but the log and the reports."""
        self.remove_rows()
        if not self.path.is_dir():
            return
        for item in self.path.iterdir():
            if item.name in _KEPT_AT_END:
                continue
            if item.is_dir():
                shutil.rmtree(item, ignore_errors=True)
            else:
                item.unlink(missing_ok=True)

    def _write(self, name: str, content: bytes) -> None:
        draft = self.path / f".{name}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.replace(self.path / name)

    def _json(self, name: str, default: Any) -> Any:
        try:
            return json.loads((self.path / name).read_bytes())
        except (FileNotFoundError, ValueError):
            return default


def _report(line: bytes) -> Mapping[str, Any] | None:
    """Read one report; None for what a full disk or a crash left of one."""
    try:
        found = json.loads(line)
        step = found["data"].get("step", 0)
        known = found["kind"] in ("message", "metrics", "checkpoint")
        whole = known and isinstance(found["message"], str) and isinstance(step, int)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if whole else None
