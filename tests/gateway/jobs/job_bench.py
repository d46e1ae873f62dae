"""A store and jobs without a server."""

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from job_process import open_db, settings_for
from jobs_gateway import TINY, rows

from connectors.jobs.local import LocalEngine
from gateway.api.fine_tuning.schema import CreateJob
from gateway.api.fine_tuning.service import create_job
from gateway.jobs.run import Run
from gateway.jobs.supervisor import Supervisor
from gateway.services import Services
from gateway.settings import Settings
from store.files import FileStore
from store.job_rows import Job
from store.jobs import JobStore
from store.tenants import TenantStore
from store.tuned import TunedModelStore


class Bench:
    """A store with a tenant, and jobs made as the API makes them."""

    def __init__(self, data_dir: Path, models_dir: Path) -> None:
        self.data_dir, self.models_dir = data_dir, models_dir
        self.db = open_db(data_dir)
        self.files, self.jobs = FileStore(self.db), JobStore(self.db)
        self.engine = "local"
        TenantStore(self.db).create("acme")

    def settings(self, **more: Any) -> Settings:
        return settings_for(self.data_dir, self.models_dir, **more)

    def create(self, content: bytes | None = None, **more: Any) -> Job:
        fields = {k: more.pop(k) for k in ("validation_file", "model") if k in more}
        file = self.files.create("acme", "t.jsonl", "fine-tune", content or rows()).id
        services = SimpleNamespace(
            db=self.db, files=self.files, settings=self.settings(job_engine=self.engine)
        )
        kind = more.pop("kind", "dp_bitfit")
        own = {"steps": 6, "batch_size": 20, "epsilon": 4.0, **more}
        method = {"type": kind, kind: own}
        body = {"model": TINY, "training_file": file, "method": method, **fields}
        made = create_job(cast(Services, services), "acme", CreateJob.model_validate(body), None)
        return self.job(made["id"])

    def upload(self, content: bytes) -> str:
        return self.files.create("acme", "p.jsonl", "fine-tune", content).id

    def supervisor(self, **more: Any) -> Supervisor:
        engine = LocalEngine()
        return Supervisor(self.settings(**more), self.db, self.files, engine, poll_seconds=0.1)

    def run(self, job: Job) -> Run:
        """What a gateway does with a job that it has claimed."""
        tuned = TunedModelStore(self.db)
        return Run(job, self.jobs, self.files, tuned, LocalEngine(), self.settings())

    def job(self, job_id: str) -> Job:
        return self.jobs.get("acme", job_id)

    def folder(self, job_id: str) -> Path:
        return self.settings().resolved_jobs_dir / job_id

    def messages(self, job_id: str) -> list[str]:
        return [e.message for e in self.jobs.events("acme", job_id, limit=500)][::-1]

    def until(self, job_id: str, done: Callable[[Job], bool], seconds: float = 90) -> Job:
        deadline = time.monotonic() + seconds
        while not done(job := self.job(job_id)):
            assert time.monotonic() < deadline, (job.status, job.error, self.messages(job_id))
            time.sleep(0.1)
        return job
