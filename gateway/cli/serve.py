"""`penname serve`."""

import logging
import os
import shlex
import socket
from collections.abc import Sequence
from contextlib import closing

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
    "alembic faiss httpx httpcore openai LiteLLM uvicorn.access sqlalchemy python_multipart pypdf "
    "presidio-analyzer"
).split()


def quiet_libraries() -> None:
    """Keep libraries that log URLs, rows and bodies at INFO and DEBUG out of the log."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def run(settings: Settings) -> None:
    """Serve until interrupted."""
    logging.basicConfig(
        level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    quiet_libraries()
    config = load_config(settings.config) if settings.config else default_config()
    with (
        listening_socket(settings.host, settings.port, "PENNAME_") as bound,
        closing(build_services(settings)) as services,
    ):
        _serve(config, services, bound, hints(services))


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


def hints(services: Services) -> list[str]:
    """Return what a first user needs to know before a request can succeed."""
    lines = []
    if services.settings.config is None and not os.environ.get("OPENAI_API_KEY"):
        lines.append(f"no OPENAI_API_KEY: only the local model, {LOCAL_MODEL}")
    if not services.keys.list():
        file = services.settings.config
        name = f"PENNAME_CONFIG={shlex.quote(str(file))} " if file else ""
        lines.append(f"no key yet; make one with: {name}penname keys create")
    return lines
