"""``GET /v1/models`` and ``GET /v1/models/{model}``."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request

from gateway.auth import Principal, principal
from gateway.errors import not_found
from gateway.json import JsonResponse

router = APIRouter(prefix="/v1")


def _listed(request: Request) -> dict[str, dict[str, Any]]:
    pipeline = request.app.state.pipeline
    allowed = pipeline.policy.models
    return {
        name: {
            "id": name,
            "object": "model",
            "created": request.app.state.started_at,
            "owned_by": pipeline.router.get(name).provider or "penname",
        }
        for name in pipeline.router.names()
        if "*" in allowed or name in allowed
    }


@router.get("/models")
async def list_models(
    request: Request, _who: Annotated[Principal, Depends(principal)]
) -> JsonResponse:
    """The models that this key may use."""
    return JsonResponse({"object": "list", "data": list(_listed(request).values())})


@router.get("/models/{model:path}")
async def retrieve_model(
    request: Request, model: str, _who: Annotated[Principal, Depends(principal)]
) -> JsonResponse:
    """One model; its name may hold slashes and colons."""
    found = _listed(request).get(model)
    if found is None:
        raise not_found("The model does not exist.", "model_not_found", "model")
    return JsonResponse(found)
