"""Jobs of two processes: trained, cancelled, and killed in one rank only."""

import time
from collections.abc import Iterator

import psutil
import pytest
from job_bench import Bench
from jobs_gateway import CANARY, rows

from gateway.jobs.budget import cost_of
from gateway.jobs.supervisor import Supervisor, make_engine
from learning.methods.registry import method
from store.job_rows import Job


@pytest.fixture
def supervisor(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Supervisor]:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # one GPU would be too few
    made = bench.supervisor(job_processes=2)
    made.start()
    yield made
    made.stop()


def ranks(job: Job) -> list[psutil.Process]:
    """The processes of a running job, rank 0 first."""
    assert job.handle
    first = psutil.Process(int(job.handle.split("/")[1]))
    return [first, *first.children(recursive=True)]


def all_gone(processes: list[psutil.Process]) -> bool:
    return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
def test_two_processes_exchange_sums_of_biases_only(
    bench: Bench,
    supervisor: Supervisor,
) -> None:
    made = bench.create(
        steps=6, checkpoint_every=3, labels=["bad", "good"],
        validation_file=bench.upload(rows(10, "v")),
    )  # fmt: skip
    job = bench.until(made.id, lambda j: j.finished_at is not None)
    assert job.status == "succeeded", job.error
    assert job.steps_taken == job.steps_total == 6  # written down once, not once a rank
    (last,) = bench.jobs.events("acme", made.id, limit=1)
    facts = last.data
    assert facts["processes"] == 2 and "valid_accuracy" in facts
    assert facts["bytes_reduced"] == 6 * 4 * facts["trained_parameters"]
    assert facts["bytes_of_full_gradients"] == 6 * 4 * facts["model_parameters"]
    assert facts["bytes_of_full_gradients"] > 100 * facts["bytes_reduced"]
    kept = ("worker.log", "events.jsonl")
    folder = bench.folder(made.id)
    bench.until(made.id, lambda _job: {p.name for p in folder.iterdir()} == set(kept))
    for name in kept:
        assert CANARY not in (folder / name).read_text()


@pytest.mark.slow
def test_one_killed_rank_takes_the_others_along_and_the_job_resumes(
    bench: Bench,
    supervisor: Supervisor,
) -> None:
    made = bench.create(steps=20_000, checkpoint_every=10)
    job = bench.until(made.id, lambda j: j.steps_done >= 20)
    group = ranks(job)
    assert len(group) == 2
    assert not (bench.folder(made.id) / "data.jsonl").exists()
    group[1].kill()
    bench.until(made.id, lambda _job: all_gone(group), seconds=30)
    again = bench.until(made.id, lambda j: j.attempts == 2 and j.steps_done > job.steps_done + 10)
    begun = [m for m in bench.messages(made.id) if m.startswith("Phase bitfit from step")]
    assert int(begun[1].rsplit(" ", 1)[1]) >= 20
    group = ranks(again)
    began = time.monotonic()
    bench.jobs.want("acme", made.id, "cancel", cost_of(method("dp_bitfit"), again.delta))
    done = bench.until(made.id, lambda j: j.status == "cancelled", seconds=40)
    print("cancelled after", time.monotonic() - began)
    assert all_gone(group)
    assert CANARY not in (bench.folder(made.id) / "worker.log").read_text()
    assert done.spent_epsilon and done.steps_taken >= again.steps_done


@pytest.mark.slow
def test_a_rank_that_hangs_is_ended_and_the_job_resumes(bench: Bench) -> None:
    made = bench.create(steps=20_000, checkpoint_every=10)
    supervisor = bench.supervisor(job_processes=2, job_stall_minutes=0.05)
    supervisor.start()
    try:
        job = bench.until(made.id, lambda j: j.steps_done >= 20)
        group = ranks(job)
        group[1].suspend()
        again = bench.until(
            made.id, lambda j: j.attempts == 2 and j.steps_done > job.steps_done + 10
        )
        assert all_gone(group)
        assert again.steps_taken >= job.steps_taken
        told = "The worker did nothing any more and was ended; the job resumes from its last checkpoint."
        assert told in bench.messages(made.id)
    finally:
        supervisor.stop()


def test_ray_gives_every_process_its_gpus(bench: Bench) -> None:
    settings = bench.settings(job_engine="ray", job_processes=3, job_gpus=1.0, job_threads=2)
    engine = make_engine(settings)
    sent: dict[str, object] = {}
    engine._client = type("Client", (), {"submit_job": lambda _self, **more: sent.update(more)})()  # type: ignore[attr-defined]
    engine.submit("ftjob-1", 1, bench.data_dir)
    assert (sent["entrypoint_num_gpus"], sent["entrypoint_num_cpus"]) == (3.0, 6)
    assert sent["runtime_env"]["env_vars"]["PENNAME_JOB_THREADS"] == "2"  # type: ignore[index]
