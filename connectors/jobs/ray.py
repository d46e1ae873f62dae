"""The Ray engine: workers as Ray Jobs, with GPUs, on any node that sees the jobs' folder."""

import shlex
from pathlib import Path
from typing import Any, Final

from connectors.jobs.base import EngineError, State, worker_command, worker_environment

_LOG_CHARACTERS: Final = 16_384
# Its client raises RuntimeError for everything.
_NO_JOB: Final = "does not exist"


class _UnknownJob(EngineError):
    pass


class RayEngine:
    """Workers through Ray's job submission.

    Args:
        address: ``http://host:port`` of the dashboard.
        gpus: GPUs of each process of a worker; a fraction shares one.
        threads: CPU threads, and cores, of each process.
        processes: Processes of a worker.
    """

    name: str = "ray"

    def __init__(
        self, address: str, gpus: float = 0.0, threads: int = 1, processes: int = 1
    ) -> None:
        self._address, self._threads = address, threads
        self._gpus, self._cpus = gpus * processes, threads * processes
        self._client: Any = None

    def submit(self, job_id: str, attempt: int, folder: Path) -> str:
        handle = f"{job_id}-{attempt}"
        command = shlex.join(worker_command(folder))
        self._call(
            "submit_job",
            # A shell in between would get the signal instead of the worker.
            entrypoint=f"exec {command}",
            submission_id=handle,
            # Which GPUs of its node a worker gets is for Ray to say.
            runtime_env={"env_vars": worker_environment(self._threads, here=False)},
            entrypoint_num_gpus=self._gpus or None,
            entrypoint_num_cpus=self._cpus,
        )
        return handle

    def poll(self, handle: str) -> State:
        if not handle:
            return "ended"
        try:
            status = str(self._call("get_job_status", handle).value)
        except _UnknownJob:  # the cluster was started anew
            return "ended"
        return "running" if status in ("PENDING", "RUNNING") else "ended"

    def stop(self, handle: str, *, force: bool = False) -> None:
        # Ray sends SIGTERM and, some seconds later, SIGKILL: both steps in one call.
        if self.poll(handle) == "running":
            self._call("stop_job", handle)

    def logs(self, handle: str, folder: Path) -> str:
        return str(self._call("get_job_logs", handle))[-_LOG_CHARACTERS:]

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self._connected(), name)(*args, **kwargs)
        except (RuntimeError, ConnectionError, OSError) as error:
            if _NO_JOB in str(error):
                raise _UnknownJob(f"Ray at {self._address} knows no such job.") from None
            raise EngineError(
                f"Ray at {self._address} did not {name.replace('_', ' ')}: {type(error).__name__}. "
                "Is the cluster up, and is PENNAME_RAY_ADDRESS its dashboard?"
            ) from None

    def _connected(self) -> Any:
        if self._client is None:
            try:
                from ray.job_submission import JobSubmissionClient
            except ImportError:
                raise EngineError(
                    "Ray is not installed. Run: pip install -c constraints.txt -e '.[ray]'"
                ) from None
            self._client = JobSubmissionClient(self._address)
        return self._client
