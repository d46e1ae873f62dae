"""Workers and gateways that are killed, paused and cancelled: no step is lost from the account."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from job_bench import Bench
from jobs_gateway import CANARY, rows

from gateway.jobs import run as run_module
from gateway.jobs.budget import cost_of
from gateway.jobs.folder import JobFolder
from gateway.jobs.supervisor import Supervisor
from learning.methods.registry import method
from store.job_rows import Job, total_steps
from store.ledger import Ledger

ROOT = Path(__file__).parents[3]


def worker_of(job: Job) -> psutil.Process:
    assert job.handle
    return psutil.Process(int(job.handle.split("/")[1]))


def is_gone(process: psutil.Process) -> bool:
    """Has it ended?  An orphan may wait for somebody to ask for its exit status."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def moved_on(job: Job, since: Job) -> bool:
    """Has a later worker taken steps of its own?"""
    return bool(job.handle) and job.steps_done > since.steps_taken + 5


def last_checkpoint(folder: Path) -> int:
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return max(line["data"]["step"] for line in lines if line["kind"] == "checkpoint")


def starts(messages: list[str]) -> list[int]:
    """The step from which each attempt went on."""
    return [int(m.rsplit(" ", 1)[1]) for m in messages if re.match("Phase .* from step", m)]


def test_a_job_survives_kill_9_of_worker_and_gateway(bench: Bench) -> None:
    # Steps enough that only the cancellation ends it.
    made = bench.create(steps=20_000, checkpoint_every=20)
    command = [sys.executable, str(Path(__file__).parent / "job_process.py")]
    first = subprocess.Popen(
        [*command, str(bench.data_dir), str(bench.models_dir)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        job = bench.until(made.id, lambda j: j.steps_done >= 20)
        assert not (bench.folder(made.id) / "data.jsonl").exists()
        worker_of(job).kill()
        second = bench.until(made.id, lambda j: j.attempts == 2 and moved_on(j, job))
        told = bench.messages(made.id)
        assert "The worker died; the job resumes from its last checkpoint." in told
    finally:
        first.kill()
        first.wait()
    orphan = worker_of(second)
    # With its gateway dead the worker saves and goes away by itself.
    bench.until(made.id, lambda _job: is_gone(orphan))
    kept = last_checkpoint(bench.folder(made.id))
    supervisor = bench.supervisor()
    supervisor.start()
    try:
        third = bench.until(made.id, lambda j: j.attempts > 2 and j.steps_done > kept)
        running = worker_of(third)
    finally:
        supervisor.stop()
    assert is_gone(running)
    begun = starts(bench.messages(made.id))
    assert begun[0] == 0 and begun[1] % 20 == 0 and begun[1] <= second.steps_taken
    assert begun[2] == kept
    # A clean stop: saved, given back, nothing lost.
    job = bench.job(made.id)
    assert (job.status, job.owner, job.failures) == ("queued", "", 0)
    # Whatever was drawn is charged; what was lost in the crash is reserved in addition.
    (taken,) = json.loads((bench.folder(made.id) / "taken.json").read_text())
    saved = last_checkpoint(bench.folder(made.id))
    assert job.steps_taken == taken >= saved > begun[-1]
    lost = taken - saved
    assert 0 <= lost <= 2 * 20
    # A crash between a checkpoint and its report reserves the steps between two of them once more.
    assert 0 <= total_steps(job.plan) - 20_000 <= lost + 20
    done = bench.jobs.want("acme", made.id, "cancel", cost_of(method("dp_bitfit"), job.delta))
    (row,) = Ledger(bench.db).rows("acme", accounts=["dpsgd"])
    assert row.epsilon == done.spent_epsilon
    assert done.spent_epsilon == method("dp_bitfit").epsilon([done.history], done.delta)
    assert 0 < done.spent_epsilon < made.reserved_epsilon and done.steps_taken == taken
    for path in bench.folder(made.id).rglob("*.*"):
        assert CANARY.encode() not in path.read_bytes()


def test_a_worker_that_always_dies_fails_its_job(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_module, "_MAX_FAILURES", 1)
    write = JobFolder._write

    def spoilt(folder: JobFolder, name: str, content: bytes) -> None:
        write(folder, name, content[:-20] if name == "data.jsonl" else content)

    monkeypatch.setattr(JobFolder, "_write", spoilt)
    made = bench.create()
    supervisor = bench.supervisor()
    supervisor.start()
    try:
        job = bench.until(made.id, lambda j: j.status == "failed")
    finally:
        supervisor.stop()
    assert job.error is not None and job.error["code"] == "worker_crashed"
    assert job.spent_epsilon == 0.0 and Ledger(bench.db).rows("acme") == []
    log = (bench.folder(made.id) / "worker.log").read_text()
    told = bench.messages(made.id)
    assert "rows.py" in log and CANARY not in log and CANARY not in " ".join(told)
    assert any(m.startswith("Process 0 met RowsError at ") for m in told)


@pytest.mark.parametrize("part", ["weights", "tokenizer"])
def test_a_damaged_base_fails_its_job_at_once_and_is_told(
    bench: Bench, models: Path, part: str
) -> None:
    name = {"weights": "model.safetensors", "tokenizer": "tokenizer.json"}[part]
    file = models / "tiny-encoder" / name
    made = bench.create()
    sound = file.read_bytes()
    file.write_bytes(sound[:1000])
    supervisor = bench.supervisor(job_processes=2)
    supervisor.start()
    try:
        job = bench.until(made.id, lambda j: j.finished_at is not None)
    finally:
        supervisor.stop()
        file.write_bytes(sound)
    assert job.attempts == 1 and job.error is not None and job.error["code"] == "training_failed"
    assert f"the base model's {part} cannot be loaded" in job.error["message"]
    assert job.spent_epsilon == 0.0 and Ledger(bench.db).rows("acme") == []


def test_a_folder_beyond_its_quota_ends_the_job(bench: Bench) -> None:
    made = bench.create(validation_file=bench.upload(rows(15_000, "v")))
    supervisor = bench.supervisor(job_disk_bytes=1024 * 1024)
    supervisor.start()
    try:
        job = bench.until(made.id, lambda j: j.status == "failed")
    finally:
        supervisor.stop()
    assert job.error is not None and job.error["code"] == "disk_quota_exceeded"


@pytest.mark.parametrize("fault", ["disk", "file", "base"])
def test_what_cannot_start_fails_at_once_and_costs_nothing(
    bench: Bench,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = bench.create()
    limits = {"job_disk_bytes": 2**62} if fault == "disk" else {}
    if fault == "file":
        bench.files.delete("acme", made.training_file)
    if fault == "base":
        limits = {}
        monkeypatch.setattr(run_module, "base_path", _no_base)
    bench.supervisor(**limits).tick()
    job = bench.job(made.id)
    codes = {"disk": "insufficient_disk", "file": "file_not_found", "base": "model_not_found"}
    assert job.status == "failed" and job.error is not None
    assert job.error["code"] == codes[fault]
    assert fault != "disk" or "lower PENNAME_JOB_DISK_BYTES" in job.error["message"]
    assert job.spent_epsilon == 0.0


def _no_base(name: str, models_dir: Path) -> Path:
    raise run_module.UnknownBase("There is no such base model.")


def test_who_lost_the_lease_lets_go_and_the_worker_ends_by_itself(bench: Bench) -> None:
    made = bench.create(steps=20_000)
    supervisor = bench.supervisor()
    supervisor.tick()
    job = bench.job(made.id)
    assert job.handle is not None
    worker = worker_of(job)
    assert os.getpgid(worker.pid) == worker.pid  # a group of its own
    with bench.db.write() as session:
        from sqlalchemy import text

        until = text("UPDATE fine_tuning_jobs SET owner = 'else', lease_until = :until")
        session.execute(until, {"until": time.time() + 600})
    for run in supervisor._runs.values():
        run._renewed -= 100
    supervisor.tick()
    assert supervisor._runs == {}
    # The new owner may have taken the worker over, so it is left; nobody renews its lease, so it ends.
    assert supervisor._engine.poll(job.handle) == "running"
    psutil.wait_procs([worker], timeout=60)
    assert supervisor._engine.poll(job.handle) == "ended"
    assert bench.job(made.id).owner == "else"
    assert not (bench.folder(made.id) / "data.jsonl").exists()


def test_a_worker_that_does_not_stop_when_asked_is_ended_and_charged(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_module, "_GRACE_SECONDS", 1.0)
    made = bench.create(steps=20_000)
    supervisor = bench.supervisor()
    supervisor.start()
    try:
        job = bench.until(made.id, lambda j: j.steps_done > 0)
        worker = worker_of(job)
        worker.suspend()
        bench.jobs.want("acme", made.id, "cancel", cost_of(method("dp_bitfit"), job.delta))
        done = bench.until(made.id, lambda j: j.status == "cancelled", seconds=20)
    finally:
        supervisor.stop()
    assert is_gone(worker)
    assert done.steps_taken >= job.steps_taken > 0 and done.spent_epsilon
    (row,) = Ledger(bench.db).rows("acme", accounts=["dpsgd"])
    assert row.epsilon == done.spent_epsilon


class Queue:
    """An engine that never comes to a job."""

    name = "local"
    stopped = 0

    def submit(self, job_id: str, attempt: int, folder: Path) -> str:
        return f"{job_id}-{attempt}"

    def poll(self, handle: str) -> str:
        return "running"

    def stop(self, handle: str, *, force: bool = False) -> None:
        self.stopped += 1


def test_who_waits_for_a_place_does_not_count_as_hung(bench: Bench) -> None:
    made = bench.create()
    folder = bench.folder(made.id)
    folder.mkdir(parents=True)
    left = {"kind": "message", "message": "unread", "data": {"step": 2}}
    (folder / "events.jsonl").write_text(json.dumps(left) + "\n")
    engine = Queue()
    settings = bench.settings(job_stall_minutes=0.001)
    supervisor = Supervisor(settings, bench.db, bench.files, engine)
    for _ in range(3):
        supervisor.tick()
        time.sleep(0.1)
    assert "unread" in bench.messages(made.id)
    assert engine.stopped == 0 and bench.job(made.id).status == "running"
    with open(folder / "events.jsonl", "a") as file:
        file.write(json.dumps({**left, "message": "its own"}) + "\n")
    supervisor.tick()
    time.sleep(0.1)
    supervisor.tick()
    assert engine.stopped > 0  # it has begun, and does nothing
