"""`penname serve`."""

import logging
from pathlib import Path

import uvicorn
from rich.console import Console

from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.config import default_config, load_config
from gateway.ingest.pipeline import resume_ingestion
from gateway.settings import Settings

_CHATTY = (
    "alembic httpx httpcore openai LiteLLM uvicorn.access sqlalchemy python_multipart pypdf"
).split()


def quiet_libraries() -> None:
    """Keep libraries that log URLs, rows and bodies at INFO and DEBUG out of the log."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


def run(config_file: Path | None, settings: Settings) -> None:
    """Serve until interrupted."""
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    quiet_libraries()
    config = load_config(config_file) if config_file else default_config()
    services = build_services(settings, config.database_url)
    pipeline = build_pipeline(services, config)
    services.detector.detect(["warm-up"])
    resume_ingestion(services)
    app = create_app(services, pipeline)
    shown = Console(stderr=True)
    shown.print(
        f"penname: policy {pipeline.policy.name}, models {', '.join(pipeline.router.names())}, "
        f"listening on http://{settings.host}:{settings.port}/v1",
        highlight=False,
        markup=False,
    )
    try:
        uvicorn.run(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=10,
        )
    finally:
        services.close()
