"""One run of one job, from the claim to its end; driven by the supervisor, tick by tick."""

import itertools
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from connectors.jobs.base import Engine, EngineError
from gateway.jobs.bases import LocalSite, UnknownBase, base_path
from gateway.jobs.budget import BudgetExceeded, budget_check, cost_of
from gateway.jobs.exporting import Exporting
from gateway.jobs.folder import JobFolder
from gateway.settings import Settings
from learning.methods.base import Export, Method, MethodError, TextFree
from learning.methods.registry import UnknownMethod, method
from learning.rows import parse_rows
from store.errors import NotFound, StoreConflict, StoreError
from store.files import FileStore
from store.job_rows import History, Job, NewEvent, Status, total_steps
from store.jobs import JobStore
from store.tuned import TunedModelStore

_log = logging.getLogger(__name__)
_MAX_FAILURES: Final = 3
_GRACE_SECONDS: Final = 10.0
_RESULT_PURPOSE: Final = "fine-tune-results"


class CannotRun(Exception):
    """The job ends here; ``code`` and message go to the client."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "param": param}


class Run:
    """A job that this process holds.

    Raises (every method):
        TransitionRefused: The job is not ours any more.
    """

    def __init__(
        self,
        job: Job,
        jobs: JobStore,
        files: FileStore,
        tuned: TunedModelStore,
        engine: Engine,
        settings: Settings,
    ) -> None:
        self.job = job
        self._jobs, self._files, self._tuned = jobs, files, tuned
        self._engine, self._settings = engine, settings
        self.folder = JobFolder(settings.resolved_jobs_dir, job.id)
        self._lease = f"lease-{job.attempts}"
        self._renewed = time.monotonic()
        self._stopping: float | None = None
        self._moved: float | None = None  # when the worker was last seen to do something
        self._hung = False
        self._why: CannotRun | None = None
        self._exporting: Exporting | None = None
        self._results: list[str] = []
        self.ended = False

    def begin(self) -> None:
        """Start a worker, or take over the one that a former owner started."""
        try:
            if self._taken_over():
                return
            if self.job.wanted:
                self._ended()
                return
            if self.job.failures >= _MAX_FAILURES:
                raise CannotRun(
                    "worker_crashed",
                    f"The worker died {self.job.failures} times without progress; the job's log on "
                    "the server says where.",
                )
            self._launch()
        except CannotRun as error:
            self._finish("failed", error.error)
        except EngineError as error:
            self._requeue(f"The engine could not start the job: {error}", failed=True)
        except OSError as error:
            self._requeue(f"The job's folder cannot be used: {error.strerror}.", failed=True)

    def drive(self) -> None:
        """Do what is due: renew, collect reports, obey, notice the end."""
        self._renew()
        if self._exporting is not None:
            self._drive_export(self._exporting)
            return
        self._collect()
        self._check_quota()
        self._check_hung()
        if (self.job.wanted or self._why) and self._stopping is None:
            self.stop()
        if self._stopping is not None and time.monotonic() - self._stopping > _GRACE_SECONDS:
            self._engine.stop(self.job.handle or "", force=True)
        if self._engine.poll(self.job.handle or "") == "ended":
            self._collect()
            self._ended()

    def stop(self) -> None:
        """Ask the worker to save a checkpoint and end."""
        self._stopping = time.monotonic()
        if self._exporting is not None:
            self._exporting.cancel()
            return
        self._engine.stop(self.job.handle or "")

    def abandon(self) -> None:
        """Leave a job that is gone, or that somebody else holds now, who may have its worker, too."""
        self.ended = True
        status, handle = "", None
        with suppress(NotFound):  # and its tenant, perhaps
            now = self._jobs.get(self.job.tenant_id, self.job.id)
            status, handle = now.status, now.handle
        try:
            if self._exporting is not None:
                self._exporting.cancel()
            elif status != "running" or handle != self.job.handle:
                self._engine.stop(self.job.handle or "", force=True)
        finally:
            if status in ("queued", "paused"):
                self.folder.remove_rows()
            elif status != "running":  # whose owner's worker may be about to read its rows
                self.folder.clear()

    def _taken_over(self) -> bool:
        if not self.job.handle:
            return False
        running = self._engine.poll(self.job.handle) == "running"
        if running or self.folder.result() is not None:
            self._lease = self.folder.lease()
            self.folder.touch(self._lease)
            self._moved = time.monotonic() if self.job.events_read else None
            return True
        return False

    def _launch(self) -> None:
        settings = self._settings
        free = shutil.disk_usage(_existing(settings.resolved_jobs_dir)).free
        if free < settings.job_disk_bytes:
            raise CannotRun(
                "insufficient_disk",
                f"The server has {free >> 20} MiB of disk left and a job may take "
                f"{settings.job_disk_bytes >> 20} MiB. Free some, or lower "
                "PENNAME_JOB_DISK_BYTES, then create the job again.",
            )
        kind = self._method()
        if isinstance(kind, TextFree):
            self._exporting = Exporting(self._export_of(kind))
            return
        rows, public = self._contents()
        self._reserve_lost_steps()
        self._start_worker(rows, public)

    def _export_of(self, kind: TextFree) -> Callable[[Callable[[], bool]], Export | None]:
        """What makes that which the worker gets instead of texts, unless an earlier run left it."""
        base, site = self._base(), LocalSite(self._settings.resolved_models_dir)
        if kind.exported(self.folder.path):  # noised once and for all
            return lambda _: Export(lambda _folder: None, kind.decoder(base, site), (), (), "")
        rows, public = self._contents()

        def work(cancelled: Callable[[], bool]) -> Export | None:
            valid = None if public is None else parse_rows(public)
            config = self.job.spec["config"]
            return kind.export(parse_rows(rows), valid, config, base, site, cancelled)

        return work

    def _drive_export(self, exporting: Exporting) -> None:
        if self.job.wanted:
            exporting.cancel()
        if not exporting.done():
            return
        self._exporting = None
        try:
            export = exporting.result()
            if export is None or self.job.wanted or self._stopping is not None:
                self._ended()
                return
            if export.told:
                self._book(export)
            self._start_worker(None, None, str(export.decoder))
        except MethodError as error:
            self._finish("failed", CannotRun("export_failed", f"The rows: {error}").error)
        except CannotRun as error:
            self._finish("failed", error.error)
        except EngineError as error:
            self._requeue(f"The engine could not start the job: {error}", failed=True)
        except StoreError:
            raise
        except Exception as error:  # its message might quote a row
            name = type(error).__name__
            self._requeue(f"The rows could not be exported ({name}).", failed=True)

    def _book(self, export: Export) -> None:
        """Charge an export, then write it: what is written can be copied."""
        job = self.job
        planned = self._cost(tuple({**e, "steps": 1} for e in job.plan))
        if self._cost(export.history) > planned * (1 + 1e-9):
            raise CannotRun(
                "export_failed",
                "The encoder makes more rows of a record than it did when the job was created, so they "
                "would cost more than was reserved. Create the job again.",
            )
        too_large = self._too_large(export.size)
        if too_large is not None:  # before it costs anything
            raise too_large
        if total_steps(job.history):
            # Booked by a run that died before it had written: drawn anew, so charged anew.
            self._reserve(tuple({**e, "steps": e["steps"] + 1} for e in job.plan))
        history = tuple({**e, "steps": e["steps"] + 1} for e in self.job.history)
        self._jobs.book(self.job, history, export.charges)
        self.job = replace(self.job, history=history)
        self.folder.make()
        export.write(self.folder.path)
        self._jobs.progress(self.job, events=[NewEvent(export.told)])

    def _start_worker(
        self, rows: bytes | None, public: bytes | None, decoder: str | None = None
    ) -> None:
        """Start a worker; without rows it finds what was exported for it."""
        self._hold()  # what came before may have taken longer than the lease
        job, settings = self.job, self._settings
        spec = {
            "job_id": job.id,
            "method": job.method,
            "config": job.spec["config"],
            "sizes": job.spec["sizes"],
            "reserved": _counts(job.plan),
            "base": str(self._base()),
            "decoder": decoder,
            "rows": rows is not None,
            "labels": job.private["labels"],
            "seed": job.seed,
            "public": public is not None,
            "processes": settings.job_processes,
            "lease": self._lease,
            # A worker gives up a little before the lease ends, so that two never run side by side.
            "lease_seconds": 0.8 * settings.job_lease_seconds,
        }
        self._collect()  # what a run that died left unread is no sign of life of this one
        self._moved = None
        self.folder.prepare(spec, _counts(self.job.history), rows, public)
        self._adopted(self._engine.submit(job.id, job.attempts, self.folder.path))
        started = NewEvent(
            f"Attempt {job.attempts}: the job runs on engine {self._engine.name}.",
            data={"attempt": job.attempts},
        )
        self._jobs.progress(self.job, handle=self.job.handle, events=[started])

    def _adopted(self, handle: str) -> None:
        self.job = replace(self.job, handle=handle)

    def _base(self) -> Path:
        try:
            return base_path(self.job.model, self._settings.resolved_models_dir)
        except UnknownBase as error:
            raise CannotRun("model_not_found", str(error), "model") from None

    def _contents(self) -> tuple[bytes, bytes | None]:
        """Return training and validation file."""
        job = self.job
        rows = self._content(job.training_file, "training_file")
        if job.validation_file is None:
            return rows, None
        return rows, self._content(job.validation_file, "validation_file")

    def _content(self, file_id: str, param: str) -> bytes:
        try:
            return self._files.content(self.job.tenant_id, file_id)
        except NotFound:
            raise CannotRun("file_not_found", f"The {param} was deleted.", param) from None

    def _reserve_lost_steps(self) -> None:
        """Reserve anew when a crash lost steps after the last checkpoint.

        Their noise was drawn, so they stay charged; the run takes as many again.
        """
        job = self.job
        history = self._history()
        left = _remaining(job.spec["sizes"], self.folder.checkpoint_step())
        plan = tuple(
            {**entry, "steps": taken["steps"] + more}
            for entry, taken, more in zip(job.plan, history, left, strict=True)
        )
        lost = total_steps(plan) - total_steps(job.plan)
        if lost <= 0:
            return
        self._reserve(plan)
        told = NewEvent(
            f"{lost} steps were lost in a crash: they stay charged and are taken again.",
            level="warn",
            data={"lost_steps": lost, "reserved_epsilon": self.job.reserved_epsilon},
        )
        self._jobs.progress(self.job, events=[told])

    def _reserve(self, plan: History) -> None:
        """Reserve another plan for the running job."""
        job, kind = self.job, self._method()
        check = budget_check(kind, self._settings)
        try:
            self._jobs.reprice(job, plan, cost_of(kind, job.delta), check)
        except BudgetExceeded as error:
            raise CannotRun("privacy_budget_exceeded", str(error), "training_file") from None
        self.job = self._jobs.get(job.tenant_id, job.id)

    def _method(self) -> Method:
        try:
            return method(self.job.method)
        except UnknownMethod as error:
            raise CannotRun("method_not_found", str(error), "method.type") from None

    def _renew(self) -> None:
        if time.monotonic() - self._renewed > self._settings.job_lease_seconds / 4:
            self._hold()
            self.folder.touch(self._lease)
        else:
            fresh = self._jobs.get(self.job.tenant_id, self.job.id)
            self.job = replace(self.job, wanted=fresh.wanted)

    def _hold(self) -> None:
        """Extend the lease in the store."""
        self.job = self._jobs.renew(self.job, self._settings.job_lease_seconds)
        self._renewed = time.monotonic()

    def _collect(self) -> None:
        """Store the worker's new reports as events, and the steps that it has taken."""
        reports, offset = self.folder.reports(self.job.events_read)
        history = self._history()
        if not reports and history == self.job.history:
            return
        self._moved = time.monotonic()
        last: Mapping[str, Any] = next(
            (r["data"] for r in reversed(reports) if "step" in r["data"]), {}
        )
        step = max(int(last.get("step", 0)), self.job.steps_done)
        eta = last.get("eta_seconds")
        self._jobs.progress(
            self.job,
            history=history,
            steps_done=step,
            estimated_finish=None if eta is None else time.time() + eta,
            events=[NewEvent(r["message"], r["kind"], "info", r["data"]) for r in reports],
            events_read=offset,
        )
        self.job = replace(self.job, history=history, events_read=offset, steps_done=step)

    def _history(self) -> History:
        """Steps taken, by what the worker wrote down; never fewer than stored before."""
        counts = self.folder.taken(len(self.job.plan))
        return tuple(
            {**entry, "steps": max(int(entry["steps"]), count)}
            for entry, count in zip(self.job.history, counts, strict=True)
        )

    def _check_quota(self) -> None:
        if self._why is None:
            self._why = self._too_large(self.folder.size())

    def _check_hung(self) -> None:
        """End a worker that has begun and does nothing any more, by a signal that cannot be ignored."""
        limit = 60 * self._settings.job_stall_minutes
        if self._moved is not None and time.monotonic() - self._moved > limit:
            self._hung = True
            self._engine.stop(self.job.handle or "", force=True)

    def _too_large(self, size: int) -> CannotRun | None:
        limit = self._settings.job_disk_bytes
        if size <= limit:
            return None
        return CannotRun(
            "disk_quota_exceeded",
            f"The job needs a folder of more than {limit >> 20} MiB. Train fewer parameters, or on fewer "
            "rows, or raise PENNAME_JOB_DISK_BYTES.",
        )

    def _ended(self) -> None:
        result = self.folder.result() or {}
        if self._why is not None:
            self._finish("failed", self._why.error)
        elif self.job.wanted == "cancel":
            self._finish("cancelled")
        elif "files" in result:
            self._succeed(result)
        elif "error" in result:
            self._finish("failed", CannotRun("training_failed", result["error"]).error)
        elif self.job.wanted == "pause":
            self.folder.remove_rows()
            paused = [NewEvent("The job is paused.")]
            self._jobs.release(self.job, "paused", paused, history=self._history())
            self.ended = True
        else:
            # Asked to stop while it was still starting, a worker leaves no result: no fault of it.
            died = "stopped" not in result and self._stopping is None
            what = "did nothing any more and was ended" if self._hung else "died"
            told = f"The worker {what}; the job resumes from its last checkpoint."
            self._requeue(told, died)

    def _requeue(self, message: str, failed: bool) -> None:
        self.folder.remove_rows()
        told = (
            [NewEvent(message, level="warn")] if failed else [NewEvent("The job waits to go on.")]
        )
        self._jobs.release(self.job, "queued", told, history=self._history(), failed=failed)
        self.ended = True

    def _succeed(self, result: Mapping[str, Any]) -> None:
        job = self.job
        name = str(job.private["name"])
        ids = self._results
        if not ids:
            with suppress(NotFound):  # a gateway died between this and the end
                ids.append(self._tuned.get(job.tenant_id, name).file_id)
        for path in result["files"][len(ids) :]:  # those before a fault of the store are there
            content = self.folder.read(path)
            row = self._files.create(job.tenant_id, Path(path).name, _RESULT_PURPOSE, content)
            ids.append(row.id)
        try:
            self._tuned.add(job.tenant_id, job.id, name, job.method, job.model, ids[0])
        except StoreConflict:
            _log.info("the model of job %s was registered before", job.id)
        self._finish("succeeded", None, ids, result.get("facts") or {})

    def _finish(
        self,
        status: Status,
        error: Mapping[str, Any] | None = None,
        files: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        history = self._history()
        done = self.job.steps_total if status == "succeeded" else self.job.steps_done
        epsilon = self._cost(history)
        text = f"The job has {status}." if status != "cancelled" else "The job was cancelled."
        if error is not None:
            text = f"The job failed: {error['message']}"
        steps = max(done, total_steps(history))
        data = {"epsilon": epsilon, "delta": self.job.delta, "steps": steps}
        event = NewEvent(text, level="error" if error else "info", data={**data, **(facts or {})})
        self._jobs.finish(
            self.job,
            status,
            lambda _history: epsilon,
            history=history,
            steps_done=done,
            error=error,
            result_files=files,
            events=[event],
        )
        self.folder.clear()
        self.ended = True

    def _cost(self, history: History) -> float:
        if not total_steps(history):
            return 0.0
        try:
            return float(cost_of(method(self.job.method), self.job.delta)(history))
        except UnknownMethod:
            # What was reserved is what can be vouched for.
            return self.job.reserved_epsilon


def _remaining(sizes: Sequence[int], step: int) -> list[int]:
    """Return how many steps of each part lie after a position of the whole run."""
    ends = itertools.accumulate(sizes)
    return [min(size, max(0, end - step)) for size, end in zip(sizes, ends, strict=True)]


def _counts(history: History) -> list[int]:
    return [int(entry["steps"]) for entry in history]


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
