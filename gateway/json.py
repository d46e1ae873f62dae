"""JSON responses through orjson, and the bounds of JSON that is read."""

from typing import Any, Final

import orjson
from starlette.responses import Response

# Far above what any client nests, far below where a recursive walk or serialiser gives up.
MAX_DEPTH: Final = 100


class JsonResponse(Response):
    """A JSON body in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)


def is_too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Tell whether a parsed JSON value nests objects and lists more than ``limit`` levels deep."""
    level = [value]
    for _ in range(limit):
        level = [child for node in level for child in _children(node)]
        if not level:
            return False
    return any(isinstance(node, dict | list) for node in level)


def _children(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []
