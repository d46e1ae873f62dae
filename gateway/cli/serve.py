"""`penname serve`."""

import logging
import os
import socket
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import uvicorn
from rich.console import Console

from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.cli.console import listening_socket
from gateway.config import LOCAL_MODEL, ServerConfig, default_config, load_config
from gateway.ingest.pipeline import resume_ingestion
from gateway.services import Services
from gateway.settings import Settings

_CHATTY = (
    "alembic faiss httpx httpcore openai LiteLLM uvicorn.access sqlalchemy python_multipart pypdf"
).split()


def quiet_libraries() -> None:
    """Keep libraries that log URLs, rows and bodies at INFO and DEBUG out of the log."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def run(config_file: Path | None, settings: Settings) -> None:
    """Serve until interrupted."""
    logging.basicConfig(
        level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    quiet_libraries()
    config = load_config(config_file) if config_file else default_config()
    with (
        listening_socket(settings.host, settings.port) as bound,
        closing(build_services(settings, config.database_url)) as services,
    ):
        _serve(config, services, bound, hints(config_file, services))


def _serve(
    config: ServerConfig, services: Services, bound: socket.socket, told: Sequence[str]
) -> None:
    settings = services.settings
    pipeline = build_pipeline(services, config)
    services.detector.detect(["warm-up"])
    resume_ingestion(services)
    app = create_app(services, pipeline)
    shown = Console(stderr=True)
    shown.print(
        f"penname: policy {pipeline.policy.name}, models {', '.join(pipeline.router.names())}, "
        f"listening on {address(settings.host, bound.getsockname()[1])}/v1",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    for line in told:
        shown.print(line, highlight=False, markup=False, soft_wrap=True)
    uvicorn_config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    uvicorn.Server(uvicorn_config).run(sockets=[bound])


def address(host: str, port: int) -> str:
    """Return the URL of a server; an IPv6 address stands in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def hints(config_file: Path | None, services: Services) -> list[str]:
    """Return what a first user needs to know before a request can succeed."""
    lines = []
    if config_file is None and not os.environ.get("OPENAI_API_KEY"):
        lines.append(f"no OPENAI_API_KEY: only the local model, {LOCAL_MODEL}")
    if not services.keys.list():
        lines.append("no key yet; make one with: penname keys create")
    return lines
