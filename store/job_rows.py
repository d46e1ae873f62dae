"""What a fine-tuning job is in the store: records, states, and rows read into them."""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, and_, insert, or_, select
from sqlalchemy.orm import Session

from store.crypto import DataKey
from store.errors import StoreError
from store.models import FineTuningEventRow, FineTuningJobRow

Status = Literal[
    "validating_files", "queued", "running", "paused", "succeeded", "failed", "cancelled"
]
Wanted = Literal["", "cancel", "pause"]
Level = Literal["info", "warn", "error"]
EventKind = Literal["message", "metrics", "checkpoint"]
History = tuple[Mapping[str, Any], ...]

_LONGEST_LEASE: Final = 3600.0
TERMINAL: Final = frozenset({"succeeded", "failed", "cancelled"})
# Where a job may go from where.  From running back to queued: its worker or gateway died.
TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    "validating_files": frozenset({"queued", "failed", "cancelled"}),
    "queued": frozenset({"running", "paused", "failed", "cancelled"}),
    "running": frozenset({"queued", "paused", "succeeded", "failed", "cancelled"}),
    "paused": frozenset({"queued", "cancelled"}),
}


class TransitionRefused(StoreError):
    """The job is not in a state from which it may go there, or somebody else holds it."""


@dataclass(frozen=True, kw_only=True)
class _Described:
    """What stays the same of a job from its creation on.

    Attributes:
        spec: Resolved configuration of the method: numbers and names of settings, nothing private.
        private: Sealed: suffix, metadata, labels, the name of the model to be made.
        dataset: Blind index of the training data's content.
        account: Ledger account, for example ``dpsgd``.
        plan: Steps to be taken that draw noise, reserved: mappings of the method's, each with ``steps``.
            ``per_record`` in one says that the ledger has a row for every record already (`JobStore.book`).
    """

    tenant_id: str
    method: str
    model: str
    engine: str
    training_file: str
    validation_file: str | None
    spec: Mapping[str, Any]
    private: Mapping[str, Any] = field(repr=False)
    seed: int
    account: str
    dataset: str
    plan: History
    delta: float


@dataclass(frozen=True, kw_only=True)
class NewJob(_Described):
    """A job to be created.

    Attributes:
        epsilon: What the plan costs at ``delta``; reserved.
        steps: Length of the run; more than the plan's where not every step draws noise.
        marks: Of the data set's records, see `store.training_data`.
        request_key: Equal for retries of one request.
    """

    epsilon: float
    steps: int
    marks: bytes = field(default=b"", repr=False)
    request_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Job(_Described):
    """A job as stored; times in seconds since the epoch, UTC.

    Attributes:
        history: Steps taken so far, in the order of ``plan``; a step's noise was drawn when it counts.
        steps_done: Position of the run; smaller than the steps taken where a crash lost some.
        spent_epsilon: At ``delta``; None until the job is settled.
        attempts: Number of claims; with the owner it tells one run from another.
        events_read: Bytes of the worker's reports that are stored as events.
        failures: Runs that died since the last progress.
        version: Changes whenever anything of the job does.
    """

    id: str
    status: Status
    wanted: Wanted
    history: History
    reserved_epsilon: float
    spent_epsilon: float | None
    steps_total: int
    steps_done: int
    steps_taken: int
    attempts: int
    failures: int
    events_read: int
    owner: str
    lease_until: float
    handle: str | None
    error: Mapping[str, Any] | None
    result_files: tuple[str, ...]
    estimated_finish: float | None
    version: int
    created_at: float
    started_at: float | None
    finished_at: float | None

    @property
    def charged(self) -> History:
        """What counts against the data set: the steps reserved, or taken once settled."""
        return self.plan if self.spent_epsilon is None else self.history


@dataclass(frozen=True)
class JobEvent:
    """One report of a job; ``number`` grows with time."""

    number: int
    job_id: str
    kind: EventKind
    level: Level
    message: str
    data: Mapping[str, Any]
    created_at: float


@dataclass(frozen=True)
class NewEvent:
    """A report to be stored.  Only public figures belong into it."""

    message: str
    kind: EventKind = "message"
    level: Level = "info"
    data: Mapping[str, Any] = field(default_factory=dict)


def dump(value: Any) -> str:
    """Return JSON for a column."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def total_steps(history: Sequence[Mapping[str, Any]]) -> int:
    """Number of steps in a plan or history."""
    return sum(int(entry["steps"]) for entry in history)


def as_taken(history: History) -> dict[str, Any]:
    """Return the columns that say which steps were taken."""
    return {
        "history": dump([dict(entry) for entry in history]),
        "steps_taken": total_steps(history),
    }


def place(tenant_id: str, job_id: str) -> tuple[str, ...]:
    """Where a job's sealed value belongs."""
    return tenant_id, "fine_tuning_jobs", job_id


def blind_key(key: DataKey, request_key: str) -> str:
    """Blind index of an idempotency key; clients may put anything into one."""
    return key.blind("job-request", request_key).hex()


def dataset_key(key: DataKey, records: Sequence[bytes]) -> str:
    """Blind index of a data set: the same for the same records in any order."""
    digests = sorted(hashlib.sha256(record).digest() for record in records)
    return key.blind("dataset", hashlib.sha256(b"".join(digests)).hexdigest()).hex()


def read_job(key: DataKey, row: FineTuningJobRow) -> Job:
    """Decrypt and decode a row.  Raises SealBroken."""
    values = {
        name: getattr(row, name)
        for name in Job.__dataclass_fields__
        if name not in ("private", "spec", "plan", "history", "error", "result_files")
    }
    plan = tuple(json.loads(row.plan))
    none_taken = tuple({**entry, "steps": 0} for entry in plan)
    return Job(
        **values,
        private=json.loads(key.open(row.sealed, *place(row.tenant_id, row.id))),
        spec=json.loads(row.spec),
        plan=plan,
        history=none_taken if row.history is None else tuple(json.loads(row.history)),
        error=None if row.error is None else json.loads(row.error),
        result_files=tuple(json.loads(row.result_files)),
    )


def is_free(now: float, lease: float) -> ColumnElement[bool]:
    """Condition that a job is queued, or that its owner let its lease run out.

    A lease of many times its length was taken under a clock that was wrong.
    """
    until = FineTuningJobRow.lease_until
    over = or_(until < now, until > now + max(_LONGEST_LEASE, 10 * lease))
    return or_(
        FineTuningJobRow.status == "queued", and_(FineTuningJobRow.status == "running", over)
    )


def ended(session: Session, job_ids: Iterable[str]) -> set[str]:
    """Return those of some jobs that have ended."""
    row = FineTuningJobRow
    query = select(row.id).where(row.id.in_(list(job_ids)), row.status.in_(TERMINAL))
    return set(session.scalars(query))


def read_event(row: FineTuningEventRow) -> JobEvent:
    """Decode a row."""
    values = {name: getattr(row, name) for name in JobEvent.__dataclass_fields__ if name != "data"}
    return JobEvent(**values, data=json.loads(row.data))


def add_events(session: Session, job_id: str, events: Sequence[NewEvent]) -> None:
    """Append reports to a job."""
    now = time.time()
    values = [
        {
            "job_id": job_id,
            "kind": event.kind,
            "level": event.level,
            "message": event.message,
            "data": dump(dict(event.data)),
            "created_at": now,
        }
        for event in events
    ]
    if values:
        session.execute(insert(FineTuningEventRow), values)
