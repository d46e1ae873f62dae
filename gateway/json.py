"""JSON responses through orjson."""

from typing import Any

import orjson
from starlette.responses import Response


class JsonResponse(Response):
    """A JSON body in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)
