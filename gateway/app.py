"""The ASGI application: routes, one error shape, request ids, nothing personal in the log."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.chat.routes import router as chat
from gateway.api.files.routes import router as files
from gateway.api.fine_tuning.routes import router as fine_tuning
from gateway.api.health.routes import router as health
from gateway.api.models.routes import router as models
from gateway.api.privacy.routes import router as privacy_routes
from gateway.api.responses.routes import router as responses
from gateway.api.vector_stores.routes import router as vector_stores
from gateway.errors import ApiError, fault_text
from gateway.housekeeping import keep_house
from gateway.jobs.supervisor import supervised
from gateway.json import JsonResponse
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.tuned import TunedModels
from store.errors import NotFound, StoreError

_log = logging.getLogger("gateway.access")


def create_app(services: Services, pipeline: Pipeline) -> FastAPI:
    """Return the application of one gateway.  The caller closes services and pipeline."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group, supervised(services):
            house = group.create_task(keep_house(services))
            yield
            house.cancel()
        app.state.tuned.workers.shutdown(wait=False, cancel_futures=True)
        await pipeline.router.close()

    app = FastAPI(
        title="Penname",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=lifespan,
        # Another URL is a 404: a redirect would name a host and a scheme that the client wrote itself.
        redirect_slashes=False,
    )
    app.state.services = services
    app.state.pipeline = pipeline
    app.state.tuned = TunedModels(services)
    app.state.started_at = int(time.time())
    for router in (
        chat,
        responses,
        models,
        files,
        vector_stores,
        fine_tuning,
        privacy_routes,
        health,
    ):
        app.include_router(router)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(StoreError, _store_error)
    app.add_middleware(RequestContext)
    return app


class RequestContext:
    """Gives each request an id and a line in the log: method, route, status, time; no content."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = f"req_{secrets.token_hex(12)}"
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def stamped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                elapsed = int((time.perf_counter() - started) * 1000)
                message.setdefault("headers", []).extend(
                    (
                        (b"x-request-id", request_id.encode()),
                        (b"openai-processing-ms", str(elapsed).encode()),
                        (b"openai-version", b"2020-10-01"),
                    )
                )
            await send(message)

        try:
            await self._app(scope, receive, stamped)
        except Exception as error:
            # The exception's text and traceback stay out of the log: they may quote a prompt.
            logging.getLogger(__name__).error("unexpected %s", type(error).__name__)
            if not status:
                await _UNEXPECTED(scope, receive, stamped)
        finally:
            route = scope.get("route")
            # The template of the route, not the path: an id in a path may name somebody.
            _log.info(
                "%s %s %s %d %.1fms",
                request_id,
                scope["method"],
                getattr(route, "path", "-"),
                status,
                (time.perf_counter() - started) * 1000,
            )


async def _api_error(_request: Request, error: Exception) -> JsonResponse:
    if not isinstance(error, ApiError):
        raise error
    return JsonResponse(error.body(), status_code=error.status, headers=error.headers)


async def _validation_error(_request: Request, error: Exception) -> JsonResponse:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    field = ".".join(str(p) for p in first.get("loc", ()) if p not in ("body", "query", "path"))
    message = f"{field or 'request'}: {fault_text(first)}"
    return _shaped(400, message, "invalid_request_error", None, field or None)


async def _http_error(request: Request, error: Exception) -> JsonResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _shaped(
            404,
            "There is no such URL here; those of the API begin with /v1/.",
            "invalid_request_error",
            "unknown_url",
        )
    if status == 405:
        return _shaped(
            405,
            f"{request.method} is not supported here.",
            "invalid_request_error",
            "method_not_supported",
        )
    return _shaped(status, "The request could not be handled.", "invalid_request_error", None)


async def _store_error(_request: Request, error: Exception) -> JsonResponse:
    if isinstance(error, NotFound):
        return _shaped(404, str(error), "invalid_request_error", "not_found")
    return _shaped(
        503, f"The store cannot serve: {error}", "service_unavailable", "store_unavailable"
    )


def _shaped(
    status: int, message: str, type: str, code: str | None, param: str | None = None
) -> JsonResponse:
    return JsonResponse(ApiError(status, message, type, code, param).body(), status_code=status)


_UNEXPECTED = _shaped(500, "An unexpected error occurred.", "server_error", "internal_error")
