"""Which session a request belongs to (DESIGN 2.3); never by address."""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from gateway.errors import bad_request

SESSION_HEADER = "x-penname-session"
_VALID = re.compile(r"[A-Za-z0-9_.:\-]{1,128}")


def session_id_of(
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    key_id: str,
    keyed_hash: Callable[[str, str], str],
) -> str:
    """Return the session that the client names, or the one its conversation implies.

    OpenAI clients resend the whole history, so the first system and user messages stay constant:
    their keyed hash names the session when the client does not.

    Raises:
        ApiError: 400 for an id that is malformed.
    """
    named = named_session(headers, body)
    if named is not None:
        return named
    first = [_first(body, ("system", "developer")), _first(body, ("user",))]
    digest = hashlib.sha256(orjson.dumps([key_id, first])).hexdigest()
    return "auto-" + keyed_hash("session", digest)[:40]


def named_session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str | None:
    """Return the session that the client names, None when it names none.

    Raises:
        ApiError: 400 for an id that is malformed.
    """
    named = headers.get(SESSION_HEADER) or _named(body)
    if named is None or (isinstance(named, str) and _VALID.fullmatch(named)):
        return named
    raise bad_request(
        "A session id has 1 to 128 letters, digits, '_', '-', '.' or ':'.",
        "metadata.penname_session",
    )


def _named(body: Mapping[str, Any]) -> Any:
    extension = body.get("penname")
    if isinstance(extension, Mapping) and "session" in extension:
        return extension["session"]
    metadata = body.get("metadata")
    return metadata.get("penname_session") if isinstance(metadata, Mapping) else None


def _first(body: Mapping[str, Any], roles: tuple[str, ...]) -> Any:
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping) and message.get("role") in roles:
            return message.get("content")
    return None
