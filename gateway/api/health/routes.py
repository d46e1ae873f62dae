"""``GET /healthz`` (alive) and ``GET /readyz`` (able to serve)."""

from fastapi import APIRouter, Request

from gateway.errors import unavailable
from gateway.json import JsonResponse
from gateway.services import Services
from gateway.work import in_worker
from store.errors import StoreError

router = APIRouter()

# A made-up person: readiness means that the detector really finds somebody.
_PROBE = "Please forward the letter to Marta Novak at marta.novak@example.com."


@router.get("/healthz")
async def healthz() -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request) -> JsonResponse:
    """Database, detector and models are there; else 503 with what is missing."""
    services: Services = request.app.state.services
    checks = await in_worker(services.workers, _checks, services)
    checks["models"] = "ok" if request.app.state.pipeline.router.names() else "no model configured"
    failed = [name for name, state in checks.items() if state != "ok"]
    if failed:
        raise unavailable(
            "Not ready: " + "; ".join(f"{name}: {checks[name]}" for name in failed), "not_ready"
        )
    return JsonResponse({"status": "ok", "checks": checks})


def _checks(services: Services) -> dict[str, str]:
    checks = {"database": "ok", "detector": "ok"}
    try:
        services.db.health()
    except StoreError as error:
        checks["database"] = str(error)
    found = {span.type for span in services.detector.detect([_PROBE])[0]}
    if not {"PERSON", "EMAIL"} <= found:
        checks["detector"] = "the self-test's person or e-mail address was not found"
    return checks
