"""A gateway for tests of files and retrieval: real store, detector and encoder, the real SDK.

The NER model is left out (`tagger=None`): nothing here depends on who is found, only on where.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from openai import OpenAI
from starlette.testclient import TestClient

from connectors.encoder import MiniLmEncoder
from gateway.api.files.routes import router as files
from gateway.api.vector_stores.routes import router as vector_stores
from gateway.errors import ApiError, bad_request
from gateway.json import JsonResponse
from gateway.services import Services
from gateway.settings import Settings
from privacy.detection.engine import Detector
from privacy.detection.registry import default_recognizers
from store.crypto import Keyring
from store.database import Database
from store.documents import DocumentStore
from store.files import FileStore
from store.keys import KeyStore
from store.responses import ResponseStore
from store.sessions import SessionStore
from store.tenants import TenantStore
from store.vectors import VectorIndex

SAMPLES = Path(__file__).parents[2] / "gateway" / "samples"
_MASTER = bytes(range(32))
_models: dict[str, Any] = {}


def encoder() -> MiniLmEncoder:
    """The encoder, loaded once for all tests of a process."""
    if "encoder" not in _models:
        _models["encoder"] = MiniLmEncoder()
    return cast(MiniLmEncoder, _models["encoder"])


def detector() -> Detector:
    if "detector" not in _models:
        _models["detector"] = Detector(default_recognizers(), None)
    return cast(Detector, _models["detector"])


@contextmanager
def open_services(folder: Path, **settings: Any) -> Iterator[Services]:
    """Services on a data folder; opening the same folder twice in a row is a restart."""
    config = Settings(data_dir=folder, **settings)
    db = Database(f"sqlite:///{folder}/penname.db", Keyring(_MASTER))
    db.upgrade()
    services = Services(
        settings=config,
        db=db,
        keys=KeyStore(db),
        tenants=TenantStore(db),
        sessions=SessionStore(db),
        responses=ResponseStore(db),
        files=FileStore(db),
        documents=DocumentStore(db),
        vectors=VectorIndex(db, folder / "vectors"),
        detector=detector(),
        encoder=encoder(),
        workers=ThreadPoolExecutor(2),
        ingestion=ThreadPoolExecutor(2),
    )
    try:
        yield services
    finally:
        services.close()


@dataclass
class Gateway:
    """A running application and keys of two tenants."""

    services: Services
    http: TestClient
    acme: OpenAI
    other: OpenAI
    acme_key: str

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.acme_key}"}


@contextmanager
def open_gateway(folder: Path, **settings: Any) -> Iterator[Gateway]:
    with open_services(folder, **settings) as services:
        keys = []
        for tenant in ("acme", "other"):
            services.tenants.create(tenant)
            keys.append(services.keys.create("client", tenant)[0])
        with TestClient(_app(services)) as http:
            clients = [
                OpenAI(
                    api_key=key,
                    base_url="http://testserver/v1",
                    http_client=http,
                    max_retries=0,
                    _strict_response_validation=True,
                )
                for key in keys
            ]
            yield Gateway(services, http, clients[0], clients[1], keys[0])


def _app(services: Services) -> FastAPI:
    """Only these two routers: they need no pools, no policy and no provider."""
    app = FastAPI()
    app.state.services = services
    app.include_router(files)
    app.include_router(vector_stores)

    @app.exception_handler(ApiError)
    async def api_error(_request: Request, error: ApiError) -> JsonResponse:
        return JsonResponse(error.body(), status_code=error.status, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JsonResponse:
        return JsonResponse(bad_request("invalid query", "query").body(), status_code=400)

    @app.exception_handler(404)
    async def unknown(_request: Request, _error: Exception) -> JsonResponse:
        return JsonResponse(ApiError(404, "There is no such URL.").body(), status_code=404)

    return app
