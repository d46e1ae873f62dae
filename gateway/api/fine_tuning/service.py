"""The work behind the fine-tuning routes.  Everything blocks; call it in a worker thread."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson
from pydantic import ValidationError

from gateway.api.files.schema import page
from gateway.api.files.service import bad_after, get_file, missing
from gateway.api.fine_tuning.schema import (
    CreateJob,
    checkpoint_object,
    event_number,
    event_object,
    job_object,
)
from gateway.errors import ApiError, bad_request, budget_exceeded, fault_text
from gateway.jobs.bases import LocalSite, UnknownBase, base_path
from gateway.jobs.budget import BudgetExceeded, budget_check, budget_of, cost_of
from gateway.jobs.folder import JobFolder
from gateway.services import Services
from learning.methods.base import Facts, Method, MethodError, Plan
from learning.methods.registry import UnknownMethod, method
from learning.rows import Rows, RowsError, parse_rows
from store.errors import NotFound
from store.job_rows import Job, JobEvent, NewEvent, NewJob, TransitionRefused, Wanted
from store.jobs import JobStore

_MOST_LABELS: Final = 200
_SHOWN: Final = 5


def parse_create(raw: bytes) -> CreateJob:
    """Parse the body of a creation.  Raises ApiError 400 naming the field, never its value."""
    try:
        return CreateJob.model_validate(orjson.loads(raw))
    except orjson.JSONDecodeError:
        raise bad_request("The body is not valid JSON in UTF-8.", code="invalid_json") from None
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = ".".join(str(part) for part in fault["loc"]) or "body"
        raise bad_request(f"{name}: {fault_text(fault)}", name) from None


def create_job(
    services: Services, tenant_id: str, body: CreateJob, request_key: str | None
) -> dict[str, Any]:
    """Check everything, reserve the budget and queue the job."""
    jobs = JobStore(services.db)
    if request_key is not None:
        found = jobs.by_request(tenant_id, request_key)
        if found is not None:
            return job_object(found)
    kind = _method(body.method.type)
    rows, labels, given, plan = _planned(services, tenant_id, body, kind)
    settings = services.settings
    check = budget_check(kind, settings)
    data = jobs.dataset(tenant_id, rows.canonical(), rows.texts())
    new = NewJob(
        tenant_id=tenant_id,
        method=kind.type,
        model=body.model,
        engine=settings.job_engine,
        training_file=body.training_file,
        validation_file=body.validation_file,
        spec={
            "config": plan.config,
            "sizes": [entry["steps"] for entry in plan.history],
            "shown": plan.shown,
            "adjacency": kind.adjacency,
        },
        private={
            "suffix": body.suffix,
            "metadata": body.metadata or {},
            "labels": list(labels),
            "name": _name(body, tenant_id),
        },
        seed=secrets.randbelow(2**31) if body.seed is None else body.seed,
        account=kind.account,
        dataset=data.key,
        marks=data.marks,
        plan=plan.history,
        steps=plan.steps,
        epsilon=plan.epsilon,
        delta=plan.delta,
        request_key=request_key,
    )
    try:
        # Composing takes a moment; done once here, the transaction finds it remembered.
        check([*jobs.charged(tenant_id, data, kind.account), plan.history])
        job = jobs.create(new, check)
    except BudgetExceeded as error:
        count = jobs.shared(tenant_id, data, kind.account)
        told = f" {count} of its rows are in another data set that was trained on, and share its budget."
        raise budget_exceeded(f"{error}{told if count else ''}") from None
    jobs.add_events(job.id, _first_events(job, rows, labels, isinstance(given.get("labels"), list)))
    return job_object(job)


def _planned(
    services: Services, tenant_id: str, body: CreateJob, kind: Method
) -> tuple[Rows, tuple[str, ...], Mapping[str, Any], Plan]:
    field = f"method.{kind.type}"
    given = body.method.settings() or body.hyperparameters or {}
    if not isinstance(given, dict):
        raise bad_request(f"{field} must be an object.", field)
    try:
        base = base_path(body.model, services.settings.resolved_models_dir)
    except UnknownBase as error:
        raise bad_request(str(error), "model", "model_not_found") from None
    rows = _rows(services, tenant_id, body.training_file, "training_file")
    public = None
    if body.validation_file is not None:
        public = _rows(services, tenant_id, body.validation_file, "validation_file")
        _check_public(rows, public)
    try:
        reads = kind.reads(base)
    except MethodError as error:
        raise bad_request(f"model: {error}", "model") from None
    for found, param in ((rows, "training_file"), (public, "validation_file")):
        if reads == "chat" and found is not None and found.kind != "chat":
            raise bad_request(f'{param}: this model needs rows with "messages".', param)
    labels = _labels(given.get("labels"), rows, public) if reads == "labels" else ()
    site = LocalSite(services.settings.resolved_models_dir)
    delta = budget_of(kind, services.settings).delta
    facts = Facts(len(rows), labels, delta, base, rows, site)
    try:
        return rows, labels, given, kind.plan(given, facts)
    except MethodError as error:
        name = f"{field}.{error.field}" if error.field else field
        raise bad_request(f"{name}: {error}", name) from None


def _method(name: str) -> Method:
    try:
        return method(name)
    except UnknownMethod as error:
        raise bad_request(str(error), "method.type", "method_not_found") from None


def _rows(services: Services, tenant_id: str, file_id: str, param: str) -> Rows:
    try:
        row = get_file(services, tenant_id, file_id)
    except ApiError:
        raise bad_request(f"{param} is not the id of a file.", param, "file_not_found") from None
    if row.purpose != "fine-tune":
        raise bad_request(f'{param}: upload the file with purpose "fine-tune".', param)
    try:
        return parse_rows(services.files.content(tenant_id, file_id))
    except RowsError as error:
        raise bad_request(f"{param}: {error}", param, f"invalid_{param}") from None


def _check_public(rows: Rows, public: Rows) -> None:
    """Refuse training rows in the validation file: its metrics are released without noise."""
    private = set(rows.texts())
    both = [n for n, text in zip(public.lines, public.texts(), strict=True) if text in private]
    if both:
        lines = ", ".join(map(str, both[:_SHOWN])) + (", ..." if len(both) > _SHOWN else "")
        raise bad_request(
            f"validation_file: {len(both)} of its rows say the same as a row of the training file, "
            f"whatever their label (line {lines}). Metrics of the validation file are shown "
            "without noise, so it must hold public rows only; leave these out of one of the files.",
            "validation_file",
            "invalid_validation_file",
        )


def _labels(given: Any, rows: Rows, public: Rows | None) -> tuple[str, ...]:
    """Return the classes in order; every row must carry one of them."""
    if isinstance(given, list) and given and all(isinstance(label, str) for label in given):
        labels = tuple(dict.fromkeys(label.strip() for label in given))
    else:
        labels = tuple(sorted({label for _, label in rows.examples()}))
    if len(labels) > _MOST_LABELS:
        raise bad_request(
            f"The training file has {len(labels)} different labels; at most {_MOST_LABELS} are "
            "possible. To train a model to write, choose one that writes.",
            "training_file",
        )
    known = set(labels)
    for found, param in ((rows, "training_file"), (public, "validation_file")):
        for line, (_, label) in zip(found.lines, found.examples(), strict=True) if found else ():
            if label not in known:
                raise bad_request(
                    f'{param}: line {line}: field "label" is none of the {len(labels)} labels; '
                    "mend the row, or list its label in labels.",
                    param,
                    f"invalid_{param}",
                )
    return labels


def _name(body: CreateJob, tenant_id: str) -> str:
    return f"ft:{body.model}:{tenant_id}:{body.suffix or ''}:{secrets.token_hex(4)}"


def _first_events(
    job: Job, rows: Rows, labels: tuple[str, ...], labels_given: bool
) -> list[NewEvent]:
    # Who gives a size of the data set has reasons not to tell the number of rows.
    size = job.spec["shown"].get("dataset_size") or len(rows)
    events = [
        NewEvent(f"Created fine-tuning job: {job.id}"),
        NewEvent(
            f"The files are valid: {size} rows. Reserved epsilon {job.reserved_epsilon:.4g} "
            f"at delta {job.delta:.3g} in the account {job.account} for {job.steps_total} steps.",
            data={"epsilon_reserved": job.reserved_epsilon, "delta": job.delta},
        ),
    ]
    if labels and not labels_given:
        text = (
            "The set of labels was taken from the training file and is treated as public; list "
            "them in labels if a label itself may give somebody away."
        )
        events.append(NewEvent(text, level="warn"))
    return events


@contextmanager
def _or_error() -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise missing("fine-tuning job", "fine_tuning_job_id") from None
    except TransitionRefused as error:
        raise bad_request(str(error), "fine_tuning_job_id", "invalid_job_state") from None


def get_job(services: Services, tenant_id: str, job_id: str) -> Job:
    """Return a job.  Raises ApiError 404."""
    with _or_error():
        return JobStore(services.db).get(tenant_id, job_id)


def want(services: Services, tenant_id: str, job_id: str, wanted: Wanted) -> dict[str, Any]:
    """Cancel or pause a job; asking again changes nothing.  Raises ApiError 400, 404."""
    job = get_job(services, tenant_id, job_id)
    cost = cost_of(_method(job.method), job.delta)
    with _or_error():
        job = JobStore(services.db).want(tenant_id, job_id, wanted, cost)
    if job.status == "cancelled":  # it did not run, so nobody else clears what its runs left
        JobFolder(services.settings.resolved_jobs_dir, job.id).clear()
    return job_object(job)


def resume(services: Services, tenant_id: str, job_id: str) -> dict[str, Any]:
    """Queue a paused job again.  Raises ApiError 400, 404."""
    with _or_error():
        return job_object(JobStore(services.db).resume(tenant_id, job_id))


def list_jobs(
    services: Services,
    tenant_id: str,
    *,
    after: str | None,
    limit: int,
    metadata: Mapping[str, str],
) -> dict[str, Any]:
    """Return a page of jobs, newest first."""
    # Metadata is sealed, so it is compared here.
    read = 10_000 if metadata else limit + 1
    try:
        jobs = JobStore(services.db).list(tenant_id, after=after, limit=read)
    except NotFound:
        raise bad_after() from None
    wanted = metadata.items()
    jobs = [job for job in jobs if wanted <= (job.private.get("metadata") or {}).items()]
    return page([job_object(job) for job in jobs[:limit]], len(jobs) > limit)


def list_events(
    services: Services, tenant_id: str, job_id: str, *, after: str | None, limit: int
) -> dict[str, Any]:
    """Return a page of events, newest first."""
    with _or_error():
        events = JobStore(services.db).events(
            tenant_id, job_id, before=_cursor(after), limit=limit + 1
        )
    return page([event_object(event) for event in events[:limit]], len(events) > limit)


def list_checkpoints(
    services: Services, tenant_id: str, job_id: str, *, after: str | None, limit: int
) -> dict[str, Any]:
    """Return a page of checkpoints, newest first."""
    job = get_job(services, tenant_id, job_id)
    events = JobStore(services.db).events(
        tenant_id, job_id, kinds=["checkpoint"], before=_cursor(after), limit=limit + 1
    )
    items = [checkpoint_object(job, event) for event in events[:limit]]
    return page(items, len(events) > limit)


def new_events(
    services: Services, tenant_id: str, job_id: str, after: int
) -> tuple[list[JobEvent], bool]:
    """Return the events after one, oldest first, and whether the job had ended before they were
    read, so that none is missed."""
    jobs = JobStore(services.db)
    with _or_error():
        job = jobs.get(tenant_id, job_id)
        return jobs.events(tenant_id, job_id, after=after, limit=100), job.finished_at is not None


def _cursor(after: str | None) -> int | None:
    if after is None:
        return None
    number = event_number(after)
    if number is None:
        raise bad_after()
    return number
