"""The local engine: a process of its own group beside the gateway.

A worker survives its gateway (it stops by itself when nobody renews its lease), so a handle names
host, process and time of start: a process number alone may belong to somebody else by now.
"""

import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from connectors.jobs.base import LOG, EngineError, State, worker_command, worker_environment

_LOG_BYTES: Final = 16_384


class LocalEngine:
    """Workers as subprocesses.

    Args:
        threads: CPU threads of a worker.
    """

    name: str = "local"

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._host = socket.gethostname()
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def submit(self, job_id: str, attempt: int, folder: Path) -> str:
        log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            child = subprocess.Popen(  # noqa: S603  (our own interpreter on our own folder)
                worker_command(folder),
                cwd=folder,
                env=worker_environment(self._threads),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError(f"The worker cannot be started: {error.strerror}.") from None
        finally:
            os.close(log)
        self._children[child.pid] = child
        return f"{self._host}/{child.pid}/{_started(child.pid)}"

    def poll(self, handle: str) -> State:
        for pid, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[pid]
        return "ended" if self._pid(handle) is None else "running"

    def stop(self, handle: str, *, force: bool = False) -> None:
        pid = self._pid(handle)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL if force else signal.SIGTERM)
            if force and pid in self._children:
                self._children.pop(pid).wait()

    def logs(self, handle: str, folder: Path) -> str:
        try:
            with open(folder / LOG, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES))
                return file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def _pid(self, handle: str) -> int | None:
        """Return the process of a handle if it is that very process and on this host."""
        host, _, rest = handle.partition("/")
        number, _, started = rest.partition("/")
        if host != self._host or not number.isdigit():
            return None
        pid = int(number)
        return pid if _started(pid) == started else None


def _started(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE and process.ppid() != os.getpid():
            return ""
        return f"{process.create_time():.2f}"
    except psutil.Error:
        return ""
