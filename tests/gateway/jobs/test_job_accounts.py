"""What a job has taken is charged, wherever it stops and whatever became of its folder."""

import json
import time
from typing import Any

import pytest
from job_bench import Bench
from jobs_gateway import rows

from gateway.jobs.budget import cost_of
from gateway.jobs.folder import JobFolder
from gateway.jobs.run import Run
from learning.methods.registry import method
from store.errors import StoreUnavailable
from store.job_rows import Job, TransitionRefused
from store.ledger import Ledger
from store.tenants import TenantStore
from store.tuned import TunedModelStore


def orphan(bench: Bench, taken: int, **more: Any) -> Job:
    """A running job whose gateway and worker died; steps that no gateway has seen were taken."""
    made: Job = bench.create(steps=100, **more)
    bench.jobs.claim("dead", 0.0, ["local"])
    folder = bench.folder(made.id)
    folder.mkdir(parents=True)
    (folder / "taken.json").write_text(json.dumps([taken]))
    time.sleep(0.01)  # its lease is over
    return made


def cancel(bench: Bench, job: Job) -> Job:
    cost = cost_of(method("dp_bitfit"), job.delta)
    done: Job = bench.jobs.want("acme", job.id, "cancel", cost)
    return done


def trained(run: Run) -> dict[str, Any]:
    """Put a worker's result into its folder."""
    files = ["weights", "card"]
    run.folder.make()
    for name in files:
        (run.folder.path / name).write_bytes(b"x")
    return {"files": files}


def kept(bench: Bench) -> list[str]:
    return [f.filename for f in bench.files.list("acme") if f.purpose == "fine-tune-results"]


def test_steps_of_a_job_that_is_paused_after_a_crash_are_charged(bench: Bench) -> None:
    made = orphan(bench, 7)
    bench.jobs.want("acme", made.id, "pause", cost_of(method("dp_bitfit"), made.delta))
    bench.supervisor().tick()
    assert bench.job(made.id).status == "paused"
    done = cancel(bench, made)
    assert done.steps_taken == 7 and done.spent_epsilon
    assert len(Ledger(bench.db).rows("acme", accounts=["dpsgd"])) == 1


def test_a_size_that_was_given_is_told_instead_of_the_number_of_rows(bench: Bench) -> None:
    told = [bench.messages(bench.create(**more).id)[1] for more in ({}, {"dataset_size": 75})]
    assert "60 rows" in told[0] and "75 rows" in told[1]


def test_a_worker_counts_on_from_what_the_account_knows(bench: Bench) -> None:
    folder = JobFolder(bench.data_dir / "jobs", "ftjob-1")
    folder.make()
    for left, known, wanted in (("[0]", 50, 50), ("[60]", 50, 60), ("", 50, 50)):
        (folder.path / "taken.json").write_text(left)
        folder.prepare({"lease": "lease-1"}, [known], None, None)
        assert folder.taken(1) == [wanted]


def test_a_damaged_report_is_passed_over(bench: Bench) -> None:
    folder = JobFolder(bench.data_dir, "ftjob-1")
    folder.make()
    good = {"message": "Step 1", "kind": "metrics", "data": {"step": 1}, "at": 1.0}
    broken = (
        '{"message": "Ste',
        "7",
        '{"kind": 1}',
        '{"message": 1, "kind": "message", "data": {}}',
    )
    for line in broken:
        (folder.path / "events.jsonl").write_text(f"{line}\n{json.dumps(good)}\n{{")
        assert folder.reports(0) == ([good], len(line) + 1 + len(json.dumps(good)) + 1)


def test_a_run_at_fault_stops_no_other(bench: Bench, monkeypatch: Any) -> None:
    made = [orphan(bench, 1), orphan(bench, 2)]
    driven: list[str] = []

    def drive(run: Run) -> None:
        driven.append(run.job.id)
        raise KeyError(run.job.id)

    supervisor = bench.supervisor(jobs_at_once=2)
    monkeypatch.setattr(Run, "begin", lambda _run: None)
    monkeypatch.setattr(Run, "drive", drive)
    supervisor.tick()
    supervisor.tick()
    assert set(driven) == {job.id for job in made}


def test_the_folder_of_a_forgotten_tenants_job_is_cleared(
    bench: Bench,
    monkeypatch: Any,
) -> None:
    made = orphan(bench, 1)
    (bench.folder(made.id) / "worker.log").touch()
    monkeypatch.setattr(Run, "begin", lambda run: setattr(run, "_renewed", -1e9))
    supervisor = bench.supervisor()
    supervisor.tick()
    TenantStore(bench.db).forget("acme")
    supervisor.tick()
    assert [path.name for path in bench.folder(made.id).iterdir()] == ["worker.log"]


def test_a_result_is_stored_once_though_the_store_fails_in_between(
    bench: Bench,
    monkeypatch: Any,
) -> None:
    made = bench.create()
    run = bench.run(bench.jobs.claim("one", 60.0, ["local"]))
    result = trained(run)
    create = bench.files.create
    full = [True]

    def failing(tenant: str, name: str, *rest: Any) -> Any:
        if name == "card" and full.pop():
            full.append(False)
            raise StoreUnavailable("full")
        return create(tenant, name, *rest)

    monkeypatch.setattr(bench.files, "create", failing)
    with pytest.raises(StoreUnavailable):
        run._succeed(result)
    run._succeed(result)
    assert sorted(kept(bench)) == ["card", "weights"]
    assert bench.job(made.id).status == "succeeded"


def test_a_gateway_that_dies_before_the_end_leaves_no_second_copy_of_the_values(
    bench: Bench,
    monkeypatch: Any,
) -> None:
    made = bench.create()
    job = bench.jobs.claim("one", 60.0, ["local"])
    result = trained(bench.run(job))

    def dying(*_args: Any, **_more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(bench.jobs, "finish", dying)
        bench.run(job)._succeed(result)
    bench.run(job)._succeed(result)
    done = bench.job(made.id)
    (model,) = TunedModelStore(bench.db).list("acme")
    assert done.status == "succeeded" and done.result_files[0] == model.file_id
    assert kept(bench).count("weights") == 1


def test_who_lost_a_job_while_starting_it_writes_no_rows(bench: Bench) -> None:
    made = bench.create()
    slow = bench.jobs.claim("slow", 0.0, ["local"])
    time.sleep(0.01)
    run = bench.run(slow)
    job = bench.jobs.claim("other", 60.0, ["local"])
    with pytest.raises(TransitionRefused):
        run.begin()
    assert not bench.folder(made.id).exists()
    other = bench.run(job)
    other.folder.prepare({"lease": "lease-2"}, [0], b"rows", None)
    run.abandon()  # the other's worker has not read them yet
    assert (bench.folder(made.id) / "data.jsonl").exists()
    other._finish("cancelled")
    run.folder.prepare({"lease": "lease-1", "labels": ["a"]}, [0], b"rows", None)
    run.abandon()
    assert list(bench.folder(made.id).iterdir()) == []


def test_what_a_gateway_left_that_died_at_a_jobs_end_is_cleared(bench: Bench) -> None:
    ended, runs = orphan(bench, 3), bench.create()
    bench.folder(runs.id).mkdir()
    for job in (ended, runs):
        (bench.folder(job.id) / "data.jsonl").write_bytes(rows())
        (bench.folder(job.id) / "worker.log").touch()
    supervisor = bench.supervisor()
    bench.jobs.finish(
        bench.jobs.claim("two", 60.0, ["local"]), "cancelled", lambda _: 0.0, history=ended.history
    )
    supervisor.sweep()
    assert [path.name for path in bench.folder(ended.id).iterdir()] == ["worker.log"]
    assert (bench.folder(runs.id) / "data.jsonl").exists()


def test_a_folder_that_cannot_be_cleared_keeps_no_other(bench: Bench, monkeypatch: Any) -> None:
    made = [orphan(bench, 1) for _ in range(8)]
    for job in made:
        held = bench.jobs.claim("two", 60.0, ["local"])
        bench.jobs.finish(held, "cancelled", lambda _: 0.0, history=job.history)
    (bench.folder(made[0].id) / "data.jsonl").mkdir()  # cannot be unlinked
    is_cleared = JobFolder.is_cleared

    def closed(folder: JobFolder) -> bool:
        if folder.path.name == "lost+found":
            raise PermissionError(13, "Permission denied")
        return is_cleared(folder)

    (bench.folder(made[0].id).parent / "lost+found").mkdir()
    monkeypatch.setattr(JobFolder, "is_cleared", closed)
    bench.supervisor().sweep()
    assert not [job for job in made[1:] if list(bench.folder(job.id).iterdir())]


def test_a_lease_of_a_wrong_clock_does_not_keep_a_job(bench: Bench) -> None:
    made = bench.create()
    bench.jobs.claim("before", 86_400.0, ["local"])
    job = bench.jobs.claim("after", 60.0, ["local"])
    assert job is not None and job.id == made.id and job.owner == "after"
    assert bench.jobs.claim("third", 60.0, ["local"]) is None
