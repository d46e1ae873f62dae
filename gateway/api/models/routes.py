"""``GET /v1/models``, ``GET`` and ``DELETE /v1/models/{model}``."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool

from gateway.auth import Principal, principal
from gateway.errors import bad_request, no_model
from gateway.json import JsonResponse
from gateway.tuned import is_tuned
from store.tuned import TunedModel

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


def _tuned(model: TunedModel) -> dict[str, Any]:
    return {
        "id": model.name,
        "object": "model",
        "created": int(model.created_at),
        "owned_by": model.tenant_id,
    }


@router.get("/models")
async def list_models(
    request: Request, who: Annotated[Principal, Depends(principal)]
) -> JsonResponse:
    """The models that this key may use, fine-tuned ones last."""
    tuned = await run_in_threadpool(request.app.state.tuned.list, who.tenant_id)
    data = [*_listed(request).values(), *map(_tuned, tuned)]
    return JsonResponse({"object": "list", "data": data})


@router.get("/models/{model:path}")
async def retrieve_model(
    request: Request, model: str, who: Annotated[Principal, Depends(principal)]
) -> JsonResponse:
    """One model; its name may hold slashes and colons."""
    if is_tuned(model, request.app.state.pipeline.router):
        found = await run_in_threadpool(request.app.state.tuned.get, who.tenant_id, model)
        return JsonResponse(_tuned(found))
    listed = _listed(request).get(model)
    if listed is None:
        raise no_model()
    return JsonResponse(listed)


@router.delete("/models/{model:path}")
async def delete_model(
    request: Request, model: str, who: Annotated[Principal, Depends(principal)]
) -> JsonResponse:
    """Remove a fine-tuned model and its values."""
    if not is_tuned(model, request.app.state.pipeline.router):
        raise bad_request("Only fine-tuned models can be deleted.", "model")
    await run_in_threadpool(request.app.state.tuned.delete, who.tenant_id, model)
    return JsonResponse({"id": model, "object": "model", "deleted": True})
