"""Jobs of the method ppft that die, pause and go on: no record is noised twice unseen by the account."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from job_bench import Bench
from ppft_job_models import BASE, CANARY, films, save_models

from gateway.errors import ApiError
from gateway.jobs.budget import cost_of
from learning.methods import _ppft_export
from learning.methods.registry import method
from learning.ppft import dataset
from store.job_rows import Job
from store.ledger import Ledger

RECORDS = 12


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ppft-bases")
    save_models(folder)
    return folder


def create(bench: Bench, **more: Any) -> Job:
    given = {"task": "sentiment", "epsilon": 20.0, "batch_size": 4, "checkpoint_every": 20, **more}
    made: Job = bench.create(films(RECORDS), kind="ppft", model=BASE, **given)
    return made


def charges(bench: Bench) -> int:
    return len(Ledger(bench.db).rows("acme", accounts=["ppft"]))


def cancel(bench: Bench, job: Job) -> None:
    bench.jobs.want("acme", job.id, "cancel", cost_of(method("ppft"), job.delta))


def without_text(folder: Path) -> bool:
    return not any(
        CANARY.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file()
    )


@pytest.fixture
def running(bench: Bench) -> Iterator[Any]:
    supervisor = bench.supervisor(job_processes=2)
    supervisor.start()
    yield supervisor
    supervisor.stop()


@pytest.mark.slow
def test_a_killed_worker_goes_on_with_the_rows_that_were_noised_once(
    bench: Bench,
    running: Any,
) -> None:
    made = create(bench, steps=100_000)
    job = bench.until(made.id, lambda j: j.steps_done >= 20)
    rows = bench.folder(made.id) / "rows" / "rows.safetensors"
    noised = rows.read_bytes()
    first = psutil.Process(int(job.handle.split("/")[1]))
    (second,) = first.children()  # two processes take their shares
    first.kill()
    again = bench.until(made.id, lambda j: j.attempts == 2 and j.steps_done > job.steps_done + 10)
    assert not second.is_running() or second.status() == psutil.STATUS_ZOMBIE
    assert rows.read_bytes() == noised and without_text(bench.folder(made.id))
    assert charges(bench) == RECORDS and again.steps_taken == 1
    told = bench.messages(made.id)
    assert len([m for m in told if m.startswith("Noised")]) == 1
    begun = [int(m.split()[-1][:-1]) for m in told if m.startswith("Training goes on")]
    assert begun and begun[0] >= 20
    bench.jobs.want("acme", made.id, "pause", cost_of(method("ppft"), made.delta))
    bench.until(made.id, lambda j: j.status == "paused")
    assert rows.read_bytes() == noised and without_text(bench.folder(made.id))
    cancel(bench, made)
    done = bench.job(made.id)
    assert done.status == "cancelled" and done.spent_epsilon == made.reserved_epsilon == 160.0
    assert charges(bench) == RECORDS


def drive(bench: Bench, supervisor: Any, job_id: str, *statuses: str) -> Job:
    deadline = time.monotonic() + 60
    while True:
        supervisor.tick()
        job: Job = bench.job(job_id)
        if job.status in statuses:
            return job
        assert time.monotonic() < deadline, (job.status, bench.messages(job_id))
        time.sleep(0.05)


@pytest.mark.parametrize("budget", [5000.0, 200.0])
def test_rows_lost_before_they_were_written_are_noised_and_charged_anew(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    budget: float,
) -> None:
    made = create(bench, steps=2)
    lost = []

    def save(data: Any, folder: Path) -> None:
        if not lost:
            lost.append(folder)
            raise OSError(CANARY)
        dataset_save(data, folder)

    dataset_save = dataset.save
    monkeypatch.setattr(_ppft_export.dataset, "save", save)
    supervisor = bench.supervisor(ppft_training_epsilon=budget)
    job = drive(bench, supervisor, made.id, "succeeded", "failed")
    told = bench.messages(made.id)
    assert "The rows could not be exported (OSError)." in told and CANARY not in str(told)
    if budget == 200.0:
        assert job.error is not None and job.error["code"] == "privacy_budget_exceeded"
        assert (job.spent_epsilon, charges(bench)) == (160.0, RECORDS)
    else:
        assert job.status == "succeeded" and job.steps_taken == 2
        assert (job.spent_epsilon, charges(bench)) == (320.0, 2 * RECORDS)


def test_a_text_in_several_rows_is_charged_for_each_of_them(bench: Bench) -> None:
    made = create(bench)
    assert made.reserved_epsilon == 160.0
    cancel(bench, made)
    own = {"kind": "ppft", "model": BASE, "task": "sentiment", "epsilon": 20.0, "steps": 1}
    again = bench.create(films(RECORDS) * 3, **own)
    assert again.reserved_epsilon == 3 * 160.0
    job = drive(bench, bench.supervisor(), again.id, "succeeded", "failed")
    assert (job.status, job.spent_epsilon, charges(bench)) == ("succeeded", 480.0, 3 * RECORDS)
    with pytest.raises(ApiError, match="repeat a text"):
        bench.create(films(RECORDS) * 40, **own)


def test_what_is_cancelled_while_its_rows_are_encoded_costs_nothing(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = create(bench)
    encode = _ppft_export.encode

    def slowly(*args: Any) -> Any:
        cancel(bench, made)
        return encode(*args)

    monkeypatch.setattr(_ppft_export, "encode", slowly)
    job = drive(bench, bench.supervisor(), made.id, "cancelled")
    assert (job.spent_epsilon, charges(bench)) == (0.0, 0)
    assert not (bench.folder(made.id) / "rows").exists()


def test_rows_dearer_than_reserved_are_not_released(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = create(bench)
    export = _ppft_export.export_noised

    def finer(encoded: Any, encoder: Any, k: int, *rest: Any) -> Any:
        return export(encoded, encoder, 1, *rest)

    monkeypatch.setattr(_ppft_export, "export_noised", finer)
    job = drive(bench, bench.supervisor(), made.id, "failed")
    assert job.error is not None and "Create the job again" in job.error["message"]
    assert (job.spent_epsilon, charges(bench)) == (0.0, 0)


def test_rows_too_large_for_the_folder_cost_nothing(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = create(bench)
    export = _ppft_export.export

    def larger(*args: Any) -> Any:
        return replace(export(*args), size=1 << 50)

    monkeypatch.setattr(_ppft_export, "export", larger)
    job = drive(bench, bench.supervisor(), made.id, "failed")
    assert job.error is not None and job.error["code"] == "disk_quota_exceeded"
    assert (job.spent_epsilon, charges(bench)) == (0.0, 0)


def test_a_base_that_went_away_ends_the_job(bench: Bench, models: Path) -> None:
    made = create(bench)
    encoder = models / "tiny-words"
    encoder.rename(models / "gone")
    try:
        job = drive(bench, bench.supervisor(), made.id, "failed")
    finally:
        (models / "gone").rename(encoder)
    assert job.error is not None and "no encoder 'tiny-words'" in job.error["message"]
    assert (job.spent_epsilon, charges(bench)) == (0.0, 0)
