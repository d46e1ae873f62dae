"""The way to a backend that receives noised embeddings instead of text (DESIGN 8.2, docs/ppft.md).

Nothing is substituted: what leaves is noise around the meaning of the original.  Its cost is of another
unit than the draws', so it has an account of its own.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

import orjson

from connectors.router import ConfigurationError, Model, Router
from gateway.deadline import Deadline
from gateway.errors import too_late, unavailable
from gateway.retrieve import Question
from gateway.services import Services
from gateway.work import in_worker
from policies.model import Policy
from privacy.accounting import Charge
from privacy.detection.coverage import is_covered
from privacy.ppft.accounting import ACCOUNT
from privacy.substitution.known import TextItem
from privacy.substitution.rules import SubstitutionError
from store.errors import StoreError
from store.ledger import Ledger


class Priced(Protocol):
    """An upstream that tells what a request costs before it is sent."""

    async def price(self, payload: bytes) -> Charge:
        """Return the charge.  Raises UpstreamError."""


class UncoveredScript(SubstitutionError):
    """The policy does not let texts leave whose names can not be found."""

    def __init__(self) -> None:
        super().__init__(
            "A text is in a script in which names can not be found reliably, and the policy "
            "(routes.uncovered_script) does not let such texts leave."
        )


def text_free_model(policy: Policy, router: Router) -> Model | None:
    """Return the model that the policy's routes name, None when they name none.

    Raises:
        ConfigurationError: there is no such model, or it is one that sees text.
    """
    name = policy.routes.text_free_model
    if not name:
        return None
    model = router.get(name)
    if model is None or model.upstream.sees_text:
        raise ConfigurationError(
            f"policy {policy.name!r}: routes.text_free_model {name!r} is not a model of the list that "
            "works without text; add one with 'model: ppft/NAME'"
        )
    return model


def must_leave_as_noise(policy: Policy, items: Iterable[TextItem]) -> bool:
    """Tell whether the policy sends these texts to the backend that sees none.

    Raises:
        UncoveredScript: they may not leave at all.
    """
    routes = policy.routes
    if not routes.types and routes.uncovered_script == "allow":
        return False
    for item in items:
        if any(span.type in routes.types for span in item.spans):
            return True
        if routes.uncovered_script != "allow" and not is_covered(item.text):
            if routes.uncovered_script == "block":
                raise UncoveredScript
            return True
    return False


def text_free_body(body: Mapping[str, Any], model: Model, question: Question | None) -> bytes:
    """Return the request as the encoder here reads it: originals, the context before the question."""
    messages = list(body["messages"])
    if question is not None:
        context = "\n\n".join(chunk.text.strip() for chunk in question.chunks)
        messages.insert(question.message, {"role": "system", "content": context})
    kept = {k: v for k, v in body.items() if k not in ("penname", "metadata", "user")}
    return orjson.dumps({**kept, "model": model.upstream_name, "messages": messages})


async def pay(
    services: Services,
    model: Model,
    payload: bytes,
    tenant_id: str,
    session_id: str,
    request_id: str,
    deadline: Deadline,
) -> dict[str, str]:
    """Charge what a request without text will cost, before it is sent; returns headers that say it.

    A model that sees text was charged when its request was prepared.  Each attempt draws new noise, so
    a repeated request costs again.

    Raises:
        UpstreamError: the request can not be encoded.
        ApiError: 503, nothing was sent; after the deadline nothing was charged either.
    """
    if model.upstream.sees_text:
        return {}
    try:
        async with asyncio.timeout(deadline.remaining()):
            charge = await cast(Priced, model.upstream).price(payload)
    except TimeoutError:
        raise too_late() from None
    ledger = Ledger(services.db)
    try:
        await in_worker(
            services.workers,
            lambda: ledger.append(tenant_id, ACCOUNT, request_id, [charge], session_id),
        )
    except StoreError as error:
        raise unavailable(f"The store cannot serve: {error}", "store_unavailable") from None
    return {"x-penname-route": model.name, "x-penname-ppft-epsilon": f"{charge.epsilon:.6g}"}
