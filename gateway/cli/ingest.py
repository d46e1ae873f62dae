"""`penname ingest`: documents into a vector store, without a server."""

from pathlib import Path

from rich.console import Console

from gateway.bootstrap import build_services
from gateway.cli.console import CommandError, print_json, progress
from gateway.ingest.pipeline import ingest_file
from gateway.services import Services
from gateway.settings import Settings


def run(files: list[Path], store: str, tenant: str, settings: Settings, as_json: bool) -> None:
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise CommandError(f"not a file: {', '.join(missing)}")
    services = build_services(settings)
    services.tenants.ensure(tenant)
    with progress("ingesting") as report:
        store_id, failed = ingest_paths(services, tenant, store, files, report)
    services.db.close()
    if as_json:
        print_json({"vector_store_id": store_id, "files": len(files), "failed": failed})
    else:
        Console().print(store_id, highlight=False)
    if failed:
        raise CommandError(f"could not ingest: {', '.join(failed)}")


def ingest_paths(
    services: Services, tenant: str, store: str, files: list[Path], report: object
) -> tuple[str, list[str]]:
    """Ingest files into the store of that name, made on first use; return id and failures."""
    existing = {row.name: row.id for row in services.documents.list(tenant)}
    store_id = existing.get(store) or services.documents.create(tenant, store).id
    failed = []
    for index, path in enumerate(files):
        if callable(report):
            report(path.name, index / len(files))
        row = services.files.create(tenant, path.name, "assistants", path.read_bytes())
        services.documents.attach(tenant, store_id, row.id)
        ingest_file(tenant, row.id, store_id, services)
        if services.documents.file(tenant, store_id, row.id).status != "completed":
            failed.append(path.name)
    return store_id, failed
