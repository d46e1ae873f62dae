"""The thread that runs fine-tuning jobs: takes queued ones, looks after its own, adopts orphans."""

import logging
import math
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from starlette.concurrency import run_in_threadpool

from connectors.jobs.base import Engine, EngineError
from connectors.jobs.local import LocalEngine
from connectors.jobs.ray import RayEngine
from gateway.jobs.folder import JobFolder
from gateway.jobs.run import Run
from gateway.services import Services
from gateway.settings import Settings
from store.database import Database
from store.errors import NotFound, StoreError
from store.files import FileStore
from store.job_rows import TransitionRefused
from store.jobs import JobStore
from store.tuned import TunedModelStore

_log = logging.getLogger(__name__)
_PATIENCE: Final = 15.0
_SWEEP_SECONDS: Final = 600.0


def make_engine(settings: Settings) -> Engine:
    """Return the engine that the settings name."""
    if settings.job_engine == "ray":
        return RayEngine(
            settings.ray_address,
            settings.job_gpus,
            settings.job_threads,
            settings.job_processes,
        )
    return LocalEngine(settings.job_threads)


@asynccontextmanager
async def supervised(services: Services) -> AsyncIterator[None]:
    """Run a supervisor beside an application, unless this process is to run no jobs."""
    if not services.settings.jobs_at_once:
        yield
        return
    settings = services.settings
    supervisor = Supervisor(settings, services.db, services.files, make_engine(settings))
    supervisor.start()
    try:
        yield
    finally:
        await run_in_threadpool(supervisor.stop)


class Supervisor:
    """Looks after the jobs of one gateway process.

    Args:
        settings: Limits and folders.
        db: Where jobs are.
        files: Where training data comes from and results go.
        engine: Where workers run.
        poll_seconds: Pause between two looks.
    """

    def __init__(
        self,
        settings: Settings,
        db: Database,
        files: FileStore,
        engine: Engine,
        poll_seconds: float = 0.5,
    ) -> None:
        self._settings, self._files = settings, files
        self._jobs, self._tuned = JobStore(db), TunedModelStore(db)
        self._engine, self._poll = engine, poll_seconds
        self._owner = f"{socket.gethostname()[:40]}-{secrets.token_hex(8)}"
        self._runs: dict[str, Run] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="penname-jobs", daemon=True)

    def start(self) -> None:
        """Start looking."""
        self._thread.start()

    def stop(self) -> None:
        """Let the running workers save a checkpoint and give their jobs back to the queue."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2 * _PATIENCE)

    def _loop(self) -> None:
        swept = -math.inf
        while not self._stop.is_set():
            if time.monotonic() - swept > _SWEEP_SECONDS:
                self._guarded(self.sweep)
                swept = time.monotonic()
            self._guarded(self.tick)
            self._stop.wait(self._poll)
        self._wind_down()

    def _wind_down(self) -> None:
        for run in self._runs.values():
            self._guarded(run.stop)
        deadline = time.monotonic() + _PATIENCE
        while self._runs and time.monotonic() < deadline:
            self._guarded(self._drive_all)
            time.sleep(0.1)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (StoreError, EngineError, OSError) as error:
            _log.warning("jobs: %s: %s", type(error).__name__, error)
        except Exception as error:
            # The thread must live on; the text stays out of the log, since it may quote a row.
            _log.error("jobs: unexpected %s", type(error).__name__)

    def sweep(self) -> None:
        """Clear the folders of ended jobs whose gateway died before it could."""
        root = self._settings.resolved_jobs_dir
        if not root.is_dir():
            return
        left = {}
        for path in root.iterdir():
            folder = JobFolder(root, path.name)
            with suppress(OSError):  # gone meanwhile, or somebody else's ("lost+found")
                if path.is_dir() and not folder.is_cleared():
                    left[path.name] = folder
        for job_id in self._jobs.ended(left):
            self._guarded(left[job_id].clear)

    def tick(self) -> None:
        """Look once."""
        self._drive_all()
        while len(self._runs) < self._settings.jobs_at_once:
            job = self._jobs.claim(
                self._owner, self._settings.job_lease_seconds, [self._engine.name]
            )
            if job is None:
                return
            run = Run(job, self._jobs, self._files, self._tuned, self._engine, self._settings)
            self._runs[job.id] = run
            self._step(job.id, run, begin=True)

    def _drive_all(self) -> None:
        for job_id, run in list(self._runs.items()):  # a fault of one is no fault of the others
            self._guarded(partial(self._step, job_id, run))

    def _step(self, job_id: str, run: Run, *, begin: bool = False) -> None:
        try:
            if begin:
                run.begin()
            else:
                run.drive()
        # Another gateway holds the job, or its tenant is gone: the worker must not go on.
        except (TransitionRefused, NotFound):
            self._guarded(run.abandon)
        if run.ended:
            self._runs.pop(job_id, None)
