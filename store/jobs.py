"""Fine-tuning jobs: a state machine, a lease, and the privacy account of their data sets.

Every change is a compare-and-set on the row's version and, while the job runs, on its owner: two
gateways never run one job twice, and one that lost its lease changes nothing any more.

What a job may cost is reserved in its row before it starts; a budget counts the reservations of open
jobs and the steps of ended ones.  At its end the job is settled: one row of the ledger, append-only,
says what its steps cost, unless there is one for every record already.  Noise that was drawn is charged,
whatever became of the job.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import case, select, tuple_, update
from sqlalchemy.orm import Session

from privacy.accounting.charges import Charge
from store.errors import MasterKeyError, NotFound, SealBroken, StoreConflict
from store.job_rows import (
    TERMINAL,
    TRANSITIONS,
    EventKind,
    History,
    Job,
    JobEvent,
    NewEvent,
    NewJob,
    Status,
    TransitionRefused,
    Wanted,
    add_events,
    as_taken,
    blind_key,
    dump,
    ended,
    is_free,
    place,
    read_event,
    read_job,
    total_steps,
)
from store.ledger import add_charges, marked
from store.models import FineTuningEventRow, FineTuningJobRow, new_id
from store.tenants import lock_tenant
from store.training_data import DataSet, data_set, recall, remember, shared

if TYPE_CHECKING:
    from store.database import Database

METRIC: Final = "add-remove"
_Row = FineTuningJobRow
Cost = Callable[[History], float]
Check = Callable[[Sequence[History]], None]
_builtin_list = list


class JobStore:
    """Jobs of all tenants."""

    def __init__(self, db: "Database") -> None:
        self._db = db

    def dataset(self, tenant_id: str, records: Sequence[bytes], texts: Iterable[str]) -> DataSet:
        """Return what names a data set: see `data_set`.  Raises UnknownTenant."""
        with self._db.read() as session:
            return data_set(self._db.tenants.get(session, tenant_id), records, texts)

    def charged(self, tenant_id: str, data: DataSet, account: str) -> _builtin_list[History]:
        """Return what every job on one of the data's records has reserved, or spent once settled."""
        with self._db.read() as session:
            return [job.charged for job in self._on(session, tenant_id, data, account)]

    def shared(self, tenant_id: str, data: DataSet, account: str) -> int:
        """Return how many records of the data the fullest other data set holds that has jobs."""
        with self._db.read() as session:
            counts = shared(session, tenant_id, data)
            jobs = self._on(session, tenant_id, data, account)
            others = [job for job in jobs if job.dataset != data.key and total_steps(job.charged)]
            return max((counts[job.dataset] for job in others), default=0)

    def create(self, new: NewJob, check: Check) -> Job:
        """Store a job as queued and reserve its budget, in one transaction.

        Args:
            new: The job.
            check: Given the histories that the data set is charged with, this job's plan last; raises
                to refuse.  It runs inside the transaction, so a budget cannot be overdrawn by a race.

        Raises:
            UnknownTenant: There is no such tenant.
        """
        if new.request_key is not None:
            found = self.by_request(new.tenant_id, new.request_key)
            if found is not None:
                return found
        try:
            return self._create(new, check)
        except StoreConflict:  # the same request was faster in another process
            found = self.by_request(new.tenant_id, new.request_key or "")
            if found is None:
                raise
            return found

    def _create(self, new: NewJob, check: Check) -> Job:
        job_id = new_id("ftjob-")
        with self._db.write() as session:
            lock_tenant(session, new.tenant_id)
            key = self._db.tenants.get(session, new.tenant_id)
            remember(session, new.tenant_id, data := DataSet(new.dataset, new.marks))
            before = self._on(session, new.tenant_id, data, new.account)
            check([*(job.charged for job in before), new.plan])
            row = _Row(
                id=job_id,
                tenant_id=new.tenant_id,
                request_key=None if new.request_key is None else blind_key(key, new.request_key),
                status="queued",
                wanted="",
                method=new.method,
                model=new.model,
                engine=new.engine,
                training_file=new.training_file,
                validation_file=new.validation_file,
                sealed=key.seal(dump(dict(new.private)).encode(), *place(new.tenant_id, job_id)),
                spec=dump(dict(new.spec)),
                seed=new.seed,
                account=new.account,
                dataset=new.dataset,
                plan=dump([dict(entry) for entry in new.plan]),
                reserved_epsilon=new.epsilon,
                delta=new.delta,
                steps_total=new.steps,
                steps_done=0,
                steps_taken=0,
                attempts=0,
                failures=0,
                events_read=0,
                owner="",
                lease_until=0.0,
                result_files="[]",
                version=1,
                created_at=time.time(),
            )
            session.add(row)
            session.flush()
            return read_job(key, row)

    def by_request(self, tenant_id: str, request_key: str) -> Job | None:
        """Return the job that an earlier try of the same request made."""
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            row = session.scalar(
                select(_Row).where(
                    _Row.tenant_id == tenant_id, _Row.request_key == blind_key(key, request_key)
                )
            )
            return None if row is None else read_job(key, row)

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Return a job.  Raises NotFound when the tenant has no such job."""
        with self._db.read() as session:
            return self._find(session, tenant_id, job_id)

    def list(
        self, tenant_id: str, *, after: str | None = None, limit: int = 20
    ) -> _builtin_list[Job]:
        """Return jobs, newest first, from the one after ``after``.  Raises NotFound for it."""
        query = select(_Row).where(_Row.tenant_id == tenant_id)
        with self._db.read() as session:
            key = self._db.tenants.get(session, tenant_id)
            if after is not None:
                last = self._find(session, tenant_id, after)
                query = query.where(
                    tuple_(_Row.created_at, _Row.id) < tuple_(last.created_at, last.id)
                )
            query = query.order_by(_Row.created_at.desc(), _Row.id.desc()).limit(limit)
            return [read_job(key, row) for row in session.scalars(query)]

    def want(self, tenant_id: str, job_id: str, wanted: Wanted, cost: Cost) -> Job:
        """Ask a job to be cancelled or paused; what does not run is at once.

        Asking twice is the same as once.

        Args:
            wanted: ``cancel`` or ``pause``.
            cost: ε of a history at the job's δ, for the settlement of a job that is not running.

        Raises:
            NotFound: The tenant has no such job.
            TransitionRefused: The job has ended, or cannot be paused now.
        """
        goal: Status = "cancelled" if wanted == "cancel" else "paused"
        with self._db.write() as session:
            job = self._find(session, tenant_id, job_id, lock=True)
            if job.status == goal:
                return job
            if goal not in TRANSITIONS.get(job.status, frozenset()):
                raise TransitionRefused(f"A job that is {job.status} cannot be {goal}.")
            if job.status == "running":
                # A pause does not undo a cancellation that is under way.
                asked = job.wanted if job.wanted == "cancel" else wanted
                self._set(session, job, wanted=asked)
            elif goal == "cancelled":
                self._settle(session, job, job.history, cost)
                self._set(session, job, status=goal, finished_at=time.time())
            else:
                self._set(session, job, status=goal)
            return self._find(session, tenant_id, job_id)

    def resume(self, tenant_id: str, job_id: str) -> Job:
        """Queue a paused job again.

        Raises:
            NotFound: The tenant has no such job.
            TransitionRefused: The job is not paused.
        """
        with self._db.write() as session:
            job = self._find(session, tenant_id, job_id, lock=True)
            if job.status == "running" and job.wanted == "pause":
                self._set(session, job, wanted="")
            elif job.status == "paused":
                self._set(session, job, status="queued", wanted="", failures=0)
            elif job.status == "queued" and job.wanted == "pause":  # its run died meanwhile
                self._set(session, job, wanted="")
            elif job.status not in ("queued", "running"):
                raise TransitionRefused(f"A job that is {job.status} cannot be resumed.")
            return self._find(session, tenant_id, job_id)

    def claim(self, owner: str, lease: float, engines: Collection[str]) -> Job | None:
        """Take the oldest job that is queued, or whose owner let its lease run out.

        Args:
            owner: Names this gateway process, uniquely.
            lease: Seconds until somebody else may take the job.
            engines: Engines that the caller can run.

        Returns:
            The job, now running under ``owner``; None when there is none to be had.
        """
        now = time.time()
        query = (
            select(_Row)
            .where(is_free(now, lease), _Row.engine.in_(engines))
            .order_by(_Row.status.desc(), _Row.created_at)
        )
        with self._db.read() as session:  # a look that finds nothing must not wait for writers
            if session.scalar(query.limit(1)) is None:
                return None
        with self._db.write() as session:
            for row in session.scalars(query.limit(10)).all():
                # What is held by somebody else or cannot be read must not keep the others waiting.
                with suppress(TransitionRefused, SealBroken, MasterKeyError, NotFound):
                    key = self._db.tenants.get(session, row.tenant_id)
                    job = read_job(key, row)
                    self._set(
                        session,
                        job,
                        status="running",
                        owner=owner,
                        lease_until=now + lease,
                        attempts=job.attempts + 1,
                        failures=job.failures + (job.status == "running"),
                        started_at=job.started_at or now,
                    )
                    return self._find(session, job.tenant_id, job.id)
        return None

    def renew(self, job: Job, lease: float) -> Job:
        """Extend the owner's lease and return the job as it is now.

        Raises:
            TransitionRefused: The job is not this owner's any more.
        """
        with self._db.write() as session:
            self._own(session, job, lease_until=time.time() + lease)
            return self._find(session, job.tenant_id, job.id)

    def progress(
        self,
        job: Job,
        *,
        handle: str | None = None,
        history: History | None = None,
        steps_done: int | None = None,
        estimated_finish: float | None = None,
        events: Sequence[NewEvent] = (),
        events_read: int | None = None,
    ) -> None:
        """Record where a running job is.  Raises TransitionRefused when it is not the owner's."""
        values: dict[str, Any] = {"estimated_finish": estimated_finish}
        if handle is not None:
            values["handle"] = handle
        if history is not None:
            values |= as_taken(history)
        if events_read is not None:
            values["events_read"] = events_read
        if steps_done is not None:
            values["steps_done"] = steps_done
            if steps_done > job.steps_done:
                values["failures"] = 0
        with self._db.write() as session:
            self._own(session, job, **values)
            add_events(session, job.id, events)

    def reprice(self, job: Job, plan: History, cost: Cost, check: Check) -> None:
        """Reserve another plan for a running job, because steps were lost and must be taken again.

        Raises:
            TransitionRefused: The job is not this owner's any more.
        """
        with self._db.write() as session:
            lock_tenant(session, job.tenant_id)
            data = recall(session, job.tenant_id, job.dataset)
            jobs = self._on(session, job.tenant_id, data, job.account)
            others = [other.charged for other in jobs if other.id != job.id]
            check([*others, plan])
            self._own(
                session,
                job,
                plan=dump([dict(entry) for entry in plan]),
                reserved_epsilon=cost(plan),
            )

    def book(self, job: Job, history: History, records: Iterable[tuple[str, Charge]]) -> None:
        """Charge what noising every record of a running job's data once has cost, in one transaction.

        Args:
            history: What has been taken then.
            records: The text of each record, of which only a keyed hash is stored, and its charge.

        Raises:
            TransitionRefused: The job is not this owner's any more.
        """
        with self._db.write() as session:
            self._own(session, job, **as_taken(history))
            key = self._db.tenants.get(session, job.tenant_id)
            charges = marked(key, job.account, records)
            add_charges(session, job.tenant_id, None, job.account, job.id, charges)

    def release(
        self,
        job: Job,
        to: Status,
        events: Sequence[NewEvent] = (),
        *,
        history: History,
        failed: bool = False,
    ) -> None:
        """Give a running job back, ``queued`` or ``paused``; its reservation stays.

        Args:
            history: Steps taken so far; who cancels it now settles it to these.
            failed: Whether its run died.

        Raises:
            TransitionRefused: The job is not this owner's any more.
        """
        if to not in ("queued", "paused"):
            raise ValueError("A job is released to 'queued' or 'paused'; others are finished.")
        with self._db.write() as session:
            values = as_taken(history)
            if to == "paused":
                # Unless the client has changed its mind: the next run sees to what is wanted now.
                still = _Row.wanted == "pause"
                values["wanted"] = case((still, ""), else_=_Row.wanted)
                values["status"] = case((still, "paused"), else_="queued")
            if failed:
                values["failures"] = _Row.failures + 1
            released = {"status": to, "owner": "", "lease_until": 0.0, "handle": "", **values}
            self._own(session, job, **released)
            add_events(session, job.id, events)

    def finish(
        self,
        job: Job,
        status: Status,
        cost: Cost,
        *,
        history: History,
        steps_done: int = 0,
        error: Mapping[str, Any] | None = None,
        result_files: Sequence[str] = (),
        events: Sequence[NewEvent] = (),
    ) -> None:
        """End a running job and settle its account to the steps taken, in one transaction.

        Raises:
            TransitionRefused: The job is not this owner's any more.
        """
        if status not in TERMINAL:
            raise ValueError(f"{status!r} is not the end of a job.")
        with self._db.write() as session:
            self._settle(session, job, history, cost)
            self._own(
                session,
                job,
                status=status,
                owner="",
                lease_until=0.0,
                error=None if error is None else dump(dict(error)),
                result_files=dump(list(result_files)),
                estimated_finish=None,
                finished_at=time.time(),
                steps_done=steps_done,
            )
            add_events(session, job.id, events)

    def ended(self, job_ids: Iterable[str]) -> set[str]:
        """Return those of some jobs, of any tenant, that have ended."""
        with self._db.read() as session:
            return ended(session, job_ids)

    def add_events(self, job_id: str, events: Sequence[NewEvent]) -> None:
        """Append reports to a job."""
        with self._db.write() as session:
            add_events(session, job_id, events)

    def events(
        self,
        tenant_id: str,
        job_id: str,
        *,
        kinds: Collection[EventKind] = ("message", "metrics", "checkpoint"),
        before: int | None = None,
        after: int | None = None,
        limit: int = 20,
    ) -> _builtin_list[JobEvent]:
        """Return reports, newest first; with ``after`` oldest first, from the one after it.

        Raises NotFound when the tenant has no such job.
        """
        row = FineTuningEventRow
        query = select(row).where(row.job_id == job_id, row.kind.in_(kinds))
        if before is not None:
            query = query.where(row.number < before)
        order = row.number.desc()
        if after is not None:
            query, order = query.where(row.number > after), row.number.asc()
        with self._db.read() as session:
            self._find(session, tenant_id, job_id)
            return [read_event(e) for e in session.scalars(query.order_by(order).limit(limit))]

    def _on(
        self, session: Session, tenant_id: str, data: DataSet, account: str
    ) -> _builtin_list[Job]:
        """The account's jobs on any data set that shares a record with this one."""
        key = self._db.tenants.get(session, tenant_id)
        related = shared(session, tenant_id, data)
        rows = session.scalars(
            select(_Row)
            .where(_Row.tenant_id == tenant_id, _Row.account == account)
            .order_by(_Row.created_at, _Row.id)
        )
        return [read_job(key, row) for row in rows if row.dataset in related]

    def _find(self, session: Session, tenant_id: str, job_id: str, lock: bool = False) -> Job:
        key = self._db.tenants.get(session, tenant_id)
        query = select(_Row).where(_Row.id == job_id, _Row.tenant_id == tenant_id)
        query = query.execution_options(populate_existing=True)
        row = session.scalar(query.with_for_update() if lock else query)
        if row is None:
            raise NotFound("There is no such fine-tuning job.")
        return read_job(key, row)

    def _set(self, session: Session, job: Job, **values: Any) -> None:
        """Change the row if nobody did since ``job`` was read."""
        done = session.execute(
            update(_Row)
            .where(_Row.id == job.id, _Row.version == job.version)
            .values(version=job.version + 1, **values)
            .execution_options(synchronize_session=False)
        )
        if done.rowcount != 1:  # type: ignore[attr-defined]
            raise TransitionRefused("The job was changed by somebody else.")

    def _own(self, session: Session, job: Job, **values: Any) -> None:
        """Change the row if it still runs under the same owner and in the same attempt."""
        mine = (_Row.id == job.id, _Row.owner == job.owner, _Row.attempts == job.attempts)
        done = session.execute(
            update(_Row)
            .where(*mine, _Row.status == "running")
            .values(version=_Row.version + 1, **values)
            .execution_options(synchronize_session=False)
        )
        if done.rowcount != 1:  # type: ignore[attr-defined]
            raise TransitionRefused("The job is held by another gateway, or has ended.")

    def _settle(self, session: Session, job: Job, history: History, cost: Cost) -> None:
        spent = cost(history) if total_steps(history) else 0.0
        session.execute(
            update(_Row)
            .where(_Row.id == job.id)
            .values(spent_epsilon=spent, **as_taken(history))
            .execution_options(synchronize_session=False)
        )
        if any(entry["steps"] and not entry.get("per_record") for entry in history):
            charge = Charge("training", job.method, METRIC, spent, job.delta, job.dataset)
            add_charges(session, job.tenant_id, None, job.account, job.id, [charge])
