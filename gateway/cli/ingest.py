"""`penname ingest`: documents into a vector store, without a server."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from gateway.bootstrap import build_services
from gateway.cli.console import CommandError, print_json, progress
from gateway.ingest.pipeline import ingest_file
from gateway.services import Services
from gateway.settings import Settings

_DIGEST = "sha256"


def run(files: list[Path], store: str, tenant: str, settings: Settings, as_json: bool) -> None:
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise CommandError(f"not a file: {', '.join(missing)}")
    services = build_services(settings)
    try:
        services.tenants.ensure(tenant)
        with progress("ingesting") as report:
            store_id, failed = ingest_paths(services, tenant, store, files, report)
    finally:
        services.close()
    if as_json:
        reasons = [{"file": name, "reason": why} for name, why in failed.items()]
        print_json({"vector_store_id": store_id, "files": len(files), "failed": reasons})
    else:
        Console().print(store_id, highlight=False)
    if failed:
        lines = "\n".join(f"  {name}: {why}" for name, why in failed.items())
        raise CommandError(f"could not ingest {len(failed)} of {len(files)} files:\n{lines}")


def ingest_paths(
    services: Services,
    tenant: str,
    store: str,
    files: list[Path],
    report: Callable[[str, float], None],
    chunking: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, str]]:
    """Ingest files into the store of that name, made on first use.

    A file whose content the store has already is left as it is; one that fails is detached again.

    Returns:
        The store's id, and the reason of each file that failed.
    """
    existing = {row.name: row.id for row in services.documents.list(tenant)}
    store_id = existing.get(store) or services.documents.create(tenant, store).id
    have = _contents(services, tenant, store_id)
    failed = {}
    for index, path in enumerate(files):
        report(path.name, index / len(files))
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        file_id, status = have.get(digest, ("", ""))
        if status == "completed":
            continue
        # One that an interrupted run left behind starts over.
        file_id = file_id or services.files.create(tenant, path.name, "assistants", content).id
        services.documents.attach(tenant, store_id, file_id, {_DIGEST: digest}, chunking)
        ingest_file(tenant, file_id, store_id, services)
        done = services.documents.file(tenant, store_id, file_id)
        have[digest] = file_id, done.status
        if done.status != "completed":
            failed[str(path)] = done.error_message or done.status
            services.documents.detach(tenant, store_id, file_id)
            services.files.delete(tenant, file_id)
            del have[digest]
    return store_id, failed


def _contents(services: Services, tenant: str, store_id: str) -> dict[str, tuple[str, str]]:
    """Return file id and status by digest, for what this command attached."""
    files = services.documents.files(tenant, store_id)
    return {str(f.attributes.get(_DIGEST)): (f.file_id, f.status) for f in files}
