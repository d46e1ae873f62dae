"""Jobs in the store: states, leases, and what a data set is charged."""

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from store import migrate
from store.database import Database
from store.errors import NotFound
from store.job_rows import TRANSITIONS, History, Job, NewEvent, NewJob, TransitionRefused
from store.jobs import JobStore
from store.ledger import Ledger
from store.models import FineTuningJobRow
from store.tenants import TenantStore
from store.training_data import DataSet
from store.tuned import TunedModelStore

SUFFIX = "varga-case"


def steps(*counts: int) -> History:
    return tuple(
        {"rate": 0.1, "noise_multiplier": 1.0, "steps": n, "label": f"p{i}"}
        for i, n in enumerate(counts)
    )


def cost(history: Sequence[Any]) -> float:
    """A price that is easy to follow: a tenth per step."""
    return sum(entry["steps"] for entry in history) / 10


def allowed(_histories: Sequence[History]) -> None:
    """A budget without end."""


def new(**values: Any) -> NewJob:
    plain: dict[str, Any] = {
        "tenant_id": "acme",
        "method": "dp_bitfit",
        "model": "tiny",
        "engine": "local",
        "training_file": "file-1",
        "validation_file": None,
        "spec": {"sizes": [8, 2]},
        "private": {"suffix": SUFFIX, "name": "ft:tiny:acme::1"},
        "seed": 1,
        "account": "dpsgd",
        "dataset": "d" * 64,
        "plan": steps(8, 2),
        "epsilon": 1.0,
        "delta": 1e-5,
        "steps": 10,
    }
    return NewJob(**{**plain, **values})


def make(jobs: JobStore, **values: Any) -> Job:
    return jobs.create(new(**values), allowed)


def claimed(jobs: JobStore, owner: str = "one", lease: float = 60.0) -> Job:
    job = jobs.claim(owner, lease, ["local"])
    assert job is not None
    return job


@pytest.fixture
def jobs(db: Database) -> JobStore:
    return JobStore(db)


def test_a_job_runs_and_is_settled_to_what_it_took(jobs: JobStore, db: Database) -> None:
    made = make(jobs)
    assert (made.status, made.steps_total, made.reserved_epsilon) == ("queued", 10, 1.0)
    assert Ledger(db).rows("acme") == []  # reserved, not spent
    job = claimed(jobs)
    assert (job.id, job.status, job.attempts) == (made.id, "running", 1)
    jobs.progress(job, history=steps(6, 0), steps_done=6, handle="h", events=[NewEvent("six")])
    seen = jobs.get("acme", made.id)
    assert (seen.steps_taken, seen.steps_done, seen.handle) == (6, 6, "h")
    jobs.finish(job, "succeeded", cost, history=steps(8, 2), steps_done=10, result_files=["file-9"])
    done = jobs.get("acme", made.id)
    assert (done.status, done.spent_epsilon, done.result_files) == ("succeeded", 1.0, ("file-9",))
    assert done.owner == "" and done.finished_at is not None
    rows = Ledger(db).rows("acme", accounts=["dpsgd"])
    assert [(r.fine_type, r.epsilon, r.delta, r.request_id, r.entity_hmac) for r in rows] == [
        ("training", 1.0, 1e-5, made.id, "d" * 64)
    ]
    assert Ledger(db).tenant_day("acme").charges == 0  # never in the account of entities


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_noise_that_was_drawn_stays_charged(jobs: JobStore, db: Database, status: Any) -> None:
    make(jobs)
    job = claimed(jobs)
    jobs.finish(job, status, cost, history=steps(3, 0), steps_done=2)
    assert math.isclose(Ledger(db).tenant_day("acme", account="dpsgd").epsilon, 0.3)
    assert jobs.get("acme", job.id).charged == steps(3, 0)


def test_a_job_that_took_no_step_costs_nothing(jobs: JobStore, db: Database) -> None:
    made = make(jobs)
    done = jobs.want("acme", made.id, "cancel", cost)
    assert (done.status, done.spent_epsilon) == ("cancelled", 0.0)
    assert jobs.want("acme", made.id, "cancel", cost) == done  # asking again changes nothing
    assert Ledger(db).rows("acme") == []


def test_the_budget_is_checked_over_all_jobs_on_the_data_set(jobs: JobStore) -> None:
    seen: list[list[int]] = []

    def check(histories: Sequence[History]) -> None:
        seen.append([sum(e["steps"] for e in h) for h in histories])
        if sum(seen[-1]) > 25:
            raise PermissionError("spent")

    jobs.create(new(), check)
    job = claimed(jobs)
    jobs.finish(job, "failed", cost, history=steps(4, 0))
    jobs.create(new(), check)
    jobs.create(new(dataset="e" * 64), check)
    jobs.create(new(), check)
    with pytest.raises(PermissionError):
        jobs.create(new(), check)
    # The failed job counts by the steps it took, the others by what they have reserved.
    assert seen == [[10], [4, 10], [10], [4, 10, 10], [4, 10, 10, 10]]
    assert len(jobs.list("acme")) == 4


def test_a_budget_cannot_be_overdrawn_by_a_race(jobs: JobStore) -> None:
    def check(histories: Sequence[History]) -> None:
        time.sleep(0.05)
        if len(histories) > 2:
            raise PermissionError("spent")

    refused: list[Exception] = []

    def work() -> None:
        try:
            jobs.create(new(), check)
        except PermissionError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(jobs.list("acme")), len(refused)) == (2, 3)


def test_two_gateways_never_claim_one_job(jobs: JobStore) -> None:
    for _ in range(4):
        make(jobs)
    found: list[str] = []

    def work(owner: str) -> None:
        while (job := jobs.claim(owner, 60, ["local"])) is not None:
            found.append(job.id)

    threads = [threading.Thread(target=work, args=(f"g{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 4


def test_an_orphan_is_taken_over_and_its_old_owner_is_powerless(jobs: JobStore) -> None:
    make(jobs)
    old = claimed(jobs, "old", lease=0.05)
    jobs.progress(old, handle="worker-1", history=steps(2, 0))
    time.sleep(0.1)
    fresh = claimed(jobs, "new")
    assert (fresh.id, fresh.attempts, fresh.failures) == (old.id, 2, 1)
    assert (fresh.handle, fresh.history) == ("worker-1", steps(2, 0))
    for attempt in (
        lambda: jobs.renew(old, 60),
        lambda: jobs.progress(old, history=steps(9, 9)),
        lambda: jobs.release(old, "queued", history=()),
        lambda: jobs.reprice(old, steps(9, 9), cost, allowed),
        lambda: jobs.finish(old, "succeeded", cost, history=steps(9, 9)),
    ):
        with pytest.raises(TransitionRefused):
            attempt()
    assert jobs.get("acme", old.id).history == steps(2, 0)
    assert jobs.renew(fresh, 60).lease_until > time.time() + 50


def test_a_live_lease_and_another_engine_are_left_alone(jobs: JobStore) -> None:
    make(jobs, engine="ray")
    assert jobs.claim("one", 60, ["local"]) is None
    make(jobs)
    claimed(jobs)
    assert jobs.claim("two", 60, ["local"]) is None


def test_a_job_that_cannot_be_read_keeps_no_other_waiting(jobs: JobStore, db: Database) -> None:
    broken, sound = make(jobs), make(jobs)
    with db.write() as session:
        row = session.get_one(FineTuningJobRow, broken.id)
        row.sealed = bytes(len(row.sealed))
    assert claimed(jobs).id == sound.id


def test_pause_and_resume(jobs: JobStore) -> None:
    made = make(jobs)
    assert jobs.want("acme", made.id, "pause", cost).status == "paused"
    assert jobs.claim("one", 60, ["local"]) is None
    assert jobs.resume("acme", made.id).status == "queued"
    claimed(jobs)
    assert jobs.want("acme", made.id, "pause", cost).wanted == "pause"
    assert jobs.resume("acme", made.id).wanted == ""  # changed one's mind in time
    jobs.want("acme", made.id, "cancel", cost)
    assert jobs.want("acme", made.id, "pause", cost).wanted == "cancel"


def test_a_paused_run_is_given_back_with_what_it_took(jobs: JobStore) -> None:
    made = make(jobs)
    job = claimed(jobs)
    jobs.want("acme", made.id, "pause", cost)
    jobs.release(job, "paused", history=steps(3, 0), failed=True)
    paused = jobs.get("acme", made.id)
    assert (paused.status, paused.failures, paused.spent_epsilon) == ("paused", 1, None)
    done = jobs.want("acme", made.id, "cancel", cost)
    assert done.steps_taken == 3 and done.spent_epsilon == cost(steps(3, 0))


@pytest.mark.parametrize("meanwhile", ["cancel", "resume"])
def test_who_changes_ones_mind_while_a_run_pauses_gets_that(jobs: JobStore, meanwhile: str) -> None:
    made = make(jobs)
    job = claimed(jobs)
    jobs.want("acme", made.id, "pause", cost)
    if meanwhile == "cancel":
        jobs.want("acme", made.id, "cancel", cost)
    else:
        jobs.resume("acme", made.id)
    jobs.release(job, "paused", history=job.history)
    again = jobs.get("acme", made.id)
    assert (again.status, again.wanted) == ("queued", "cancel" if meanwhile == "cancel" else "")


def test_a_job_whose_run_died_while_it_was_to_pause_can_be_resumed(jobs: JobStore) -> None:
    made = make(jobs)
    job = claimed(jobs)
    jobs.want("acme", made.id, "pause", cost)
    jobs.release(job, "queued", history=job.history, failed=True)
    assert jobs.resume("acme", made.id).wanted == ""


def test_only_the_listed_transitions_exist(jobs: JobStore) -> None:
    assert set(TRANSITIONS) == {"validating_files", "queued", "running", "paused"}
    make(jobs)
    job = claimed(jobs)
    jobs.finish(job, "succeeded", cost, history=steps(8, 2))
    for wanted in ("cancel", "pause"):
        with pytest.raises(TransitionRefused, match="succeeded"):
            jobs.want("acme", job.id, wanted, cost)  # type: ignore[arg-type]
    with pytest.raises(TransitionRefused, match="succeeded"):
        jobs.resume("acme", job.id)
    with pytest.raises(TransitionRefused):
        jobs.finish(job, "failed", cost, history=steps(8, 2))


def test_lost_steps_are_reserved_again(jobs: JobStore, db: Database) -> None:
    made = make(jobs)
    job = claimed(jobs)
    jobs.reprice(job, steps(11, 2), cost, allowed)
    jobs.finish(job, "succeeded", cost, history=steps(11, 2))
    assert math.isclose(Ledger(db).tenant_day("acme", account="dpsgd").epsilon, 1.3)

    def refuse(_histories: Sequence[History]) -> None:
        raise PermissionError("spent")

    make(jobs)
    job = claimed(jobs)
    with pytest.raises(PermissionError):
        jobs.reprice(job, steps(99, 2), cost, refuse)
    assert jobs.get("acme", job.id).plan == made.plan


def test_a_repeated_request_makes_one_job(jobs: JobStore) -> None:
    first = make(jobs, request_key="Ilse Varga's job")
    assert make(jobs, request_key="Ilse Varga's job").id == first.id
    assert make(jobs, request_key="another").id != first.id
    assert make(jobs, tenant_id="other", request_key="Ilse Varga's job").id != first.id


def test_pages_and_tenants(jobs: JobStore) -> None:
    ids = [make(jobs).id for _ in range(3)][::-1]
    assert [job.id for job in jobs.list("acme", limit=2)] == ids[:2]
    assert [job.id for job in jobs.list("acme", after=ids[1])] == ids[2:]
    assert jobs.list("other") == []
    for call in (
        lambda: jobs.get("other", ids[0]),
        lambda: jobs.events("other", ids[0]),
        lambda: jobs.want("other", ids[0], "cancel", cost),
        lambda: jobs.resume("other", ids[0]),
    ):
        with pytest.raises(NotFound):
            call()


def test_events_in_both_directions(jobs: JobStore) -> None:
    job = make(jobs)
    jobs.add_events(job.id, [NewEvent(f"e{n}", data={"n": n}) for n in range(4)])
    jobs.add_events(job.id, [NewEvent("c", "checkpoint", data={"step": 3})])
    newest = jobs.events("acme", job.id, limit=2)
    assert [e.message for e in newest] == ["c", "e3"]
    older = jobs.events("acme", job.id, before=newest[-1].number)
    assert [e.data["n"] for e in older] == [2, 1, 0]
    following = jobs.events("acme", job.id, after=older[-1].number)
    assert [e.message for e in following] == ["e1", "e2", "e3", "c"]
    assert [e.message for e in jobs.events("acme", job.id, kinds=["checkpoint"])] == ["c"]


def of(jobs: JobStore, *texts: str, tenant: str = "acme") -> DataSet:
    return jobs.dataset(tenant, [text.encode() for text in texts], texts)


def test_the_same_records_are_one_data_set(jobs: JobStore) -> None:
    first = of(jobs, "a", "b")
    assert first == of(jobs, "b", "a")
    assert len({first, of(jobs, "a"), of(jobs, "a", "b", tenant="other")}) == 3


def test_a_record_is_charged_for_every_data_set_that_holds_it(jobs: JobStore) -> None:
    data = {name: of(jobs, *name) for name in ("abcd", "cdef", "xyz")}
    made = {
        name: make(jobs, dataset=found.key, marks=found.marks, plan=steps(number))
        for (name, found), number in zip(data.items(), (3, 5, 7), strict=True)
    }
    make(jobs, dataset=data["abcd"].key, marks=data["abcd"].marks, account="ppft")
    assert jobs.charged("acme", data["abcd"], "dpsgd") == [steps(3), steps(5)]
    assert jobs.charged("acme", of(jobs, "f", "x"), "dpsgd") == [steps(5), steps(7)]
    assert jobs.charged("acme", of(jobs, "q"), "dpsgd") == []
    assert jobs.charged("other", of(jobs, "a", tenant="other"), "dpsgd") == []
    assert jobs.shared("acme", of(jobs, "b", "c", "d"), "dpsgd") == 3
    assert jobs.shared("acme", data["xyz"], "dpsgd") == 0
    seen: list[Sequence[History]] = []
    job = claimed(jobs)
    assert job.id == made["abcd"].id
    jobs.reprice(job, steps(4), cost, seen.append)
    assert seen == [[steps(5), steps(4)]]


def test_jobs_from_before_records_were_marked_still_count(jobs: JobStore, db: Database) -> None:
    data, more = of(jobs, *"abc"), of(jobs, *"cd")
    made = make(jobs, dataset=data.key, marks=data.marks, plan=steps(3))
    migrate.downgrade(db._writing, "0003")
    db.upgrade()
    assert jobs.charged("acme", data, "dpsgd") == [steps(3)]
    assert jobs.charged("acme", more, "dpsgd") == []  # its records are not known any more
    jobs.reprice(claimed(jobs), steps(4), cost, allowed)
    make(jobs, dataset=data.key, marks=data.marks, plan=steps(5))
    assert jobs.charged("acme", more, "dpsgd") == [steps(4), steps(5)]
    assert jobs.get("acme", made.id).status == "running"


def test_records_of_a_budget_cannot_be_overdrawn_by_a_race(jobs: JobStore) -> None:
    data = [of(jobs, "shared", f"own {number}") for number in range(8)]

    def check(histories: Sequence[History]) -> None:
        if sum(map(cost, histories)) > 2.0:
            raise ValueError("too much")

    def create(found: DataSet) -> bool:
        try:
            jobs.create(new(dataset=found.key, marks=found.marks, plan=steps(10)), check)
        except ValueError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, data)) == 2


def test_what_a_client_wrote_is_sealed_and_forgotten(jobs: JobStore, db: Database) -> None:
    job = make(jobs, request_key="secret key")
    with db.read() as session:
        row = session.get(FineTuningJobRow, job.id)
        assert row is not None
        stored = repr(vars(row))
    assert SUFFIX not in stored and "secret key" not in stored
    assert jobs.get("acme", job.id).private["suffix"] == SUFFIX
    TenantStore(db).forget("acme")
    TenantStore(db).create("acme")
    assert jobs.list("acme") == []


def test_tuned_models_belong_to_their_tenant(db: Database) -> None:
    tuned = TunedModelStore(db)
    made = tuned.add("acme", "ftjob-1", "ft:tiny:acme:x:1", "dp_bitfit", "tiny", "file-1")
    assert tuned.get("acme", made.name) == made == tuned.list("acme")[0]
    with pytest.raises(NotFound):
        tuned.get("other", made.name)
    assert tuned.delete("other", made.name) is None
    assert tuned.delete("acme", made.name) == made
    assert tuned.delete("acme", made.name) is None


def test_a_failure_counts_until_there_is_progress(jobs: JobStore) -> None:
    make(jobs)
    job = claimed(jobs)
    jobs.release(job, "queued", history=job.history, failed=True)
    job = claimed(jobs)
    assert job.failures == 1
    jobs.progress(replace(job), steps_done=1)
    assert jobs.get("acme", job.id).failures == 0
