"""``python -m learning.bitfit JOB.json``: run a job, events as JSON lines on standard output.

SIGTERM and SIGINT write a checkpoint and end the process with status 3; started again, the job goes
on. Under torchrun every process runs this.
"""

import json
import signal
import sys
from pathlib import Path
from types import FrameType

from pydantic import ValidationError

from learning.bitfit.errors import CheckpointError, PrivacyError
from learning.bitfit.events import Event
from learning.bitfit.job import Job, run_job

STOPPED = 3


class _Stop:
    """Set by a signal, asked by the trainer."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._set)

    def _set(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


def _print(event: Event) -> None:
    print(json.dumps(event.as_dict()), flush=True)


def _told(error: Exception) -> str:
    """Say what to mend, without error numbers and without what the file holds."""
    if isinstance(error, ValidationError):
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        told = (f"{'.'.join(map(str, f['loc']))}: {f['msg']}".removeprefix(": ") for f in faults)
        return f"{sys.argv[1]}: " + "; ".join(told)
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def main() -> int:
    """Run the job that the first argument names; returns the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    stop = _Stop()
    try:
        job = Job.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
        result = run_job(job, _print, lambda: stop.asked)
    except (OSError, ValueError, PrivacyError, CheckpointError) as error:
        print(f"error: {_told(error)}", file=sys.stderr)
        return 1
    return 0 if result.status == "completed" else STOPPED


if __name__ == "__main__":
    sys.exit(main())
