"""Authentication: an API key names a tenant and a role."""

from dataclasses import dataclass
from typing import cast

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from gateway.errors import unauthorized
from gateway.services import Services


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: everything below is scoped by ``tenant_id``."""

    tenant_id: str
    key_id: str
    role: str


def services(request: Request) -> Services:
    """FastAPI dependency: the services of this application."""
    return cast(Services, request.app.state.services)


async def principal(request: Request) -> Principal:
    """FastAPI dependency: verify the bearer key.

    Raises:
        ApiError: 401 when the key is missing, unknown, expired or revoked.
    """
    header = request.headers.get("authorization", "")
    scheme, _, key = header.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise unauthorized(
            "No API key. Send 'Authorization: Bearer <key>'; 'penname keys create' makes one."
        )
    record = await run_in_threadpool(services(request).keys.verify, key.strip())
    if record is None:
        raise unauthorized("The API key is unknown, expired or revoked.")
    return Principal(record.tenant_id, record.id, record.role)
