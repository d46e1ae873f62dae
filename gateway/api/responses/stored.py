"""Stored responses as clients reach them: to continue, fetch, page through, delete."""

import contextlib
from collections.abc import Iterator
from typing import Any

from gateway.api.responses.items import Item
from gateway.errors import bad_request, not_found, unavailable
from gateway.services import Services
from store.errors import NotFound, StoreError
from store.responses import StoredResponse


def earlier_turns(
    services: Services, tenant_id: str, response_id: str, param: str = "previous_response_id"
) -> list[StoredResponse]:
    """Return the turns up to one, oldest first.  Raises ApiError.

    Args:
        param: The field that names the response.
    """
    try:
        return services.responses.chain(tenant_id, response_id)
    except NotFound:
        raise bad_request(
            "There is no such response, or one before it was deleted: it was not stored, or its session "
            "was forgotten.",
            param,
            "previous_response_not_found",
        ) from None
    except OverflowError:
        raise bad_request("The conversation has too many turns; begin a new one.", param) from None
    except StoreError as error:
        raise unavailable(f"The store cannot serve: {error}", "store_unavailable") from None


def spoken(turn: StoredResponse) -> list[Item]:
    """Return what was said in a turn, as items."""
    return [*turn.content["input"], *turn.content["response"]["output"]]


@contextlib.contextmanager
def _existing() -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise not_found("There is no such response.", "response_not_found", "response_id") from None


def get_response(services: Services, tenant_id: str, response_id: str) -> dict[str, Any]:
    """Return a stored response, results of searches included.  Raises ApiError 404."""
    with _existing():
        response: dict[str, Any] = services.responses.get(tenant_id, response_id).content[
            "response"
        ]
    return response


def input_items(
    services: Services, tenant_id: str, response_id: str, order: str, after: str | None
) -> list[Item]:
    """Return what a response was given, earlier turns included, from the item after ``after``.

    Raises:
        ApiError: 404 for an unknown response, 400 for an unknown item.
    """
    get_response(services, tenant_id, response_id)  # else a 404
    *before, last = earlier_turns(services, tenant_id, response_id, "response_id")
    items = [item for turn in before for item in spoken(turn)] + list(last.content["input"])
    if order == "desc":
        items.reverse()
    if after is None:
        return items
    for number, item in enumerate(items):
        if item["id"] == after:
            return items[number + 1 :]
    raise bad_request("after: there is no such item.", "after")


def delete_response(services: Services, tenant_id: str, response_id: str) -> dict[str, Any]:
    """Delete a stored response.  Raises ApiError 404."""
    if not services.responses.delete(tenant_id, response_id):
        raise not_found("There is no such response.", "response_not_found", "response_id")
    return {"id": response_id, "object": "response", "deleted": True}
