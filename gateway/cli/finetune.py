"""`penname finetune`: train from the command line, watch, and draw what was seen."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from gateway.api.fine_tuning.schema import CreateJob, MethodChoice, job_object
from gateway.api.fine_tuning.service import create_job, resume, want
from gateway.bootstrap import build_services
from gateway.cli.console import CommandError, print_json, print_uncut
from gateway.errors import ApiError
from gateway.jobs.plots import draw
from gateway.jobs.supervisor import Supervisor, make_engine
from gateway.services import Services
from gateway.settings import Settings
from store.errors import NotFound
from store.job_rows import TERMINAL, Job
from store.jobs import JobStore

_LOOK_SECONDS: Final = 0.3


@contextmanager
def _open(settings: Settings, tenant: str) -> Iterator[tuple[Services, JobStore]]:
    services = build_services(settings)
    try:
        services.tenants.ensure(tenant)
        yield services, JobStore(services.db)
    except ApiError as error:
        raise CommandError(error.message) from None
    except NotFound as error:
        raise CommandError(str(error)) from None
    finally:
        services.workers.shutdown(wait=False, cancel_futures=True)
        services.vectors.close()
        services.db.close()


def create(
    settings: Settings,
    tenant: str,
    file: Path,
    *,
    model: str,
    method: str,
    given: dict[str, Any],
    validation: Path | None,
    suffix: str | None,
    detach: bool,
    as_json: bool,
) -> None:
    """Create a job from a file; run it here and show its progress unless detached."""
    with _open(settings, tenant) as (services, jobs):
        body = CreateJob(
            model=model,
            training_file=_stored(services, tenant, file),
            validation_file=None if validation is None else _stored(services, tenant, validation),
            suffix=suffix,
            seed=None,
            method=MethodChoice.model_validate({"type": method, method: given}),
            hyperparameters=None,
            metadata=None,
            integrations=None,
        )
        try:
            made = create_job(services, tenant, body, None)
        except ApiError:
            _forget(services, tenant, (body.training_file, body.validation_file))
            raise
        if not detach:
            _run(services, jobs, tenant, made["id"])
        job = jobs.get(tenant, made["id"])
        _show(job, as_json)
        if job.status == "failed":
            raise CommandError((job.error or {}).get("message", "the job failed"))


def show_all(settings: Settings, tenant: str, as_json: bool) -> None:
    """List jobs, newest first."""
    with _open(settings, tenant) as (_services, jobs):
        found = jobs.list(tenant, limit=1000)
    if as_json:
        print_json([job_object(job) for job in found])
        return
    table = Table()
    for name in ("job", "status", "method", "model", "steps", "epsilon", "result"):
        table.add_column(name)
    for job in found:
        spent = "-" if job.spent_epsilon is None else f"{job.spent_epsilon:.4g}"
        result = job.private["name"] if job.status == "succeeded" else ""
        steps = f"{job.steps_done}/{job.steps_total}"
        price = f"{spent} of {job.reserved_epsilon:.4g}"
        table.add_row(job.id, job.status, job.method, job.model, steps, price, result)
    print_uncut(table)


def change(settings: Settings, tenant: str, job_id: str, what: str) -> None:
    """Cancel, pause or resume a job."""
    with _open(settings, tenant) as (services, jobs):
        if what == "resume":
            resume(services, tenant, job_id)
        else:
            want(services, tenant, job_id, "cancel" if what == "cancel" else "pause")
        job = jobs.get(tenant, job_id)
        asked = f" ({job.wanted} asked for)" if job.wanted else ""
        Console().print(f"{job.id}: {job.status}{asked}", highlight=False, soft_wrap=True)


def watch(settings: Settings, tenant: str, job_id: str) -> None:
    """Run what is queued, show a job's progress to its end, and how it ended."""
    with _open(settings, tenant) as (services, jobs):
        if jobs.get(tenant, job_id).status not in TERMINAL:
            _run(services, jobs, tenant, job_id)
        _show(jobs.get(tenant, job_id), False)


def plot(settings: Settings, tenant: str, job_id: str) -> None:
    """Draw what there is."""
    with _open(settings, tenant) as (_services, jobs):
        _plot(settings, jobs, jobs.get(tenant, job_id), required=True)


def _stored(services: Services, tenant: str, path: Path) -> str:
    return services.files.create(tenant, path.name, "fine-tune", path.read_bytes()).id


def save(settings: Settings, tenant: str, job_id: str, out: Path) -> None:
    """Write a job's result files into a folder; a file that is there is never overwritten."""
    with _open(settings, tenant) as (services, jobs):
        job = jobs.get(tenant, job_id)
        if not job.result_files:
            raise CommandError(f"{job_id} is {job.status} and has no result files")
        out.mkdir(parents=True, exist_ok=True)
        for file_id in job.result_files:
            path = out / Path(services.files.get(tenant, file_id).filename).name
            try:
                with path.open("xb") as handle:
                    handle.write(services.files.content(tenant, file_id))
            except FileExistsError:
                raise CommandError(f"{path} is there already; name another folder") from None
            _say(f"written: {path}")


def _forget(services: Services, tenant: str, files: Iterable[str | None]) -> None:
    for file_id in files:
        if file_id is not None:
            services.files.delete(tenant, file_id)


def _run(services: Services, jobs: JobStore, tenant: str, job_id: str) -> None:
    settings = services.settings
    supervisor = Supervisor(settings, services.db, services.files, make_engine(settings))
    supervisor.start()
    try:
        _follow(jobs, tenant, job_id)
    except KeyboardInterrupt:
        _say(f"saving a checkpoint; go on with: penname finetune watch {job_id}")
        raise
    finally:
        supervisor.stop()
    _plot(settings, jobs, jobs.get(tenant, job_id), required=False)


def _follow(jobs: JobStore, tenant: str, job_id: str) -> None:
    """Show steps, ε so far, time left, and metrics of the public file; never a training loss."""
    columns = (
        TextColumn("{task.fields[status]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
    )
    last = 0
    figures: dict[str, Any] = {}  # the last metrics stay until there are newer ones
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None, status="queued", told="")
        while True:
            job = jobs.get(tenant, job_id)
            for event in jobs.events(tenant, job_id, after=last, limit=500):
                last = event.number
                if "epsilon" in event.data:
                    figures |= {"eta_seconds": None, **event.data}
                    bar.update(task, told=_told(figures, job.reserved_epsilon))
                elif event.kind == "message":
                    bar.console.print(event.message, markup=False, highlight=False, soft_wrap=True)
            bar.update(
                task, completed=job.steps_done, total=job.steps_total or None, status=job.status
            )
            if job.status in TERMINAL or job.status == "paused":
                return
            time.sleep(_LOOK_SECONDS)


def _told(data: Mapping[str, Any], reserved: float) -> str:
    parts = [f"epsilon {data['epsilon']:.3f} of {reserved:.3f}"]
    if data.get("eta_seconds"):
        parts.append(f"{data['eta_seconds']:.0f} s left")
    metrics = [f"{key} {data[key]:.3f}" for key in ("valid_loss", "valid_accuracy") if key in data]
    # Metrics on a line of their own: a terminal of 80 columns has no room for them beside the bar.
    return "\n".join(", ".join(line) for line in (parts, metrics) if line)


def _say(text: str) -> None:
    """Print on standard error what is to be copied: unbroken, however long."""
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


def _show(job: Job, as_json: bool) -> None:
    if as_json:
        print_json(job_object(job))
        return
    out = Console()
    out.print(f"{job.id}: {job.status}", highlight=False, soft_wrap=True)
    if job.status == "succeeded":
        out.print(f"model {job.private['name']}", highlight=False, soft_wrap=True, markup=False)
        out.print(
            f"epsilon {job.spent_epsilon:.4g} at delta {job.delta:.3g} in the account {job.account}",
            highlight=False,
            soft_wrap=True,
        )
        out.print(
            f"its files: penname finetune save {job.id} --out FOLDER",
            highlight=False,
            soft_wrap=True,
        )


def _plot(settings: Settings, jobs: JobStore, job: Job, *, required: bool) -> None:
    events = jobs.events(job.tenant_id, job.id, after=0, limit=100_000)
    try:
        paths = draw(events, settings.resolved_jobs_dir / job.id)
    except ImportError:
        if required:
            raise CommandError(
                "Plots need matplotlib. Run: pip install -c constraints.txt -e '.[plots]'"
            ) from None
        return
    if required and not paths:
        raise CommandError(f"{job.id} is {job.status} and has taken no step that could be drawn")
    for path in paths:
        _say(f"drawn: {path}")
