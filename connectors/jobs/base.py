"""What an engine does: start a worker on a folder, tell whether it runs, stop it.

The folder is the whole conversation with the worker (`learning.worker`); what became of a run is read
there, so a gateway can take over a run that another one started.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, Protocol

State = Literal["running", "ended"]

LOG: Final = "worker.log"
# What a worker may know of this process's environment: no key, no URL, no token.
_PASSED: Final = (
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
    "PENNAME_CACHE", "XDG_CACHE_HOME",
)  # fmt: skip
_GPUS: Final = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES")


class EngineError(Exception):
    """The engine cannot do what was asked; the message says what to mend."""


class Engine(Protocol):
    """Runs workers."""

    @property
    def name(self) -> str:
        """As ``PENNAME_JOB_ENGINE`` names it."""

    def submit(self, job_id: str, attempt: int, folder: Path) -> str:
        """Start a worker on a prepared folder; returns a handle that any process can use.

        Raises:
            EngineError: It cannot be started.
        """

    def poll(self, handle: str) -> State:
        """Tell whether the worker runs.  Raises EngineError when that cannot be known."""

    def stop(self, handle: str, *, force: bool = False) -> None:
        """Ask the worker to save and end; with ``force`` end it, and all it started, at once."""

    def logs(self, handle: str, folder: Path) -> str:
        """Return the end of what the worker wrote to its standard output and error."""


def worker_environment(threads: int, *, here: bool = True) -> dict[str, str]:
    """Return the environment of a worker.

    Args:
        threads: CPU threads of its numeric libraries.
        here: It runs on this machine: which GPUs this process may use holds for it too.
    """
    root = str(Path(__file__).resolve().parents[2])
    passed: Mapping[str, str] = os.environ
    return {
        **{name: passed[name] for name in (*_PASSED, *(_GPUS if here else ())) if name in passed},
        "PYTHONPATH": root,
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": str(threads),
        "PENNAME_JOB_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "TQDM_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }


def worker_command(folder: Path) -> list[str]:
    """Return the command line of a worker."""
    return [sys.executable, "-P", "-m", "learning.worker", str(folder)]
