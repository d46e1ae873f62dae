"""One error shape for every route: ``{"error": {"message", "type", "param", "code"}}``.

    ApiError
    ├── bad_request        400 invalid_request_error
    ├── unauthorized       401 authentication_error
    ├── forbidden          403 permission_error
    ├── not_found          404 invalid_request_error
    ├── budget_exceeded    403 privacy_budget_exceeded, never retried by a client
    ├── unavailable        503 service_unavailable (fail closed: nothing was forwarded)
    └── upstream_failed    502/504 upstream_error, the provider's own words withheld

Messages never hold an original: they name fields, types and limits, not values.
"""

from collections.abc import Mapping
from typing import Any, Final


class ApiError(Exception):
    """An error that a client reads.  ``headers`` travel with the response."""

    def __init__(
        self,
        status: int,
        message: str,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.code = code
        self.param = param
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        return {
            "error": {
                "message": self.message,
                "type": self.type,
                "param": self.param,
                "code": self.code,
            }
        }


# Kinds of pydantic's faults whose messages are made of the schema alone; ``value_error`` is raised
# by our own validators.  Others (a union's tag, a parser's complaint) may quote what was sent.
_TELLABLE: Final = frozenset(
    "missing extra_forbidden value_error literal_error string_type string_too_short string_too_long "
    "string_pattern_mismatch bool_type bool_parsing int_type int_parsing int_from_float int_parsing_size "
    "float_type float_parsing finite_number greater_than greater_than_equal less_than less_than_equal "
    "list_type dict_type model_type too_short too_long none_required".split()
)


def fault_text(fault: Mapping[str, Any]) -> str:
    """Return what is wrong with a field, from one of pydantic's faults; never what was sent."""
    if fault.get("type") not in _TELLABLE:
        return "is not valid"
    return str(fault.get("msg", "is not valid")).removeprefix("Value error, ")


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    return ApiError(400, message, "invalid_request_error", code, param)


def unauthorized(message: str) -> ApiError:
    return ApiError(401, message, "authentication_error", "invalid_api_key")


def forbidden(message: str, code: str = "permission_denied") -> ApiError:
    return ApiError(403, message, "permission_error", code)


def not_found(message: str, code: str | None = None, param: str | None = None) -> ApiError:
    return ApiError(404, message, "invalid_request_error", code, param)


def no_model() -> ApiError:
    return not_found(
        "The model does not exist or is not open to this key; GET /v1/models lists them.",
        "model_not_found",
        "model",
    )


def too_large(message: str) -> ApiError:
    return ApiError(413, message, "invalid_request_error", "request_too_large")


def budget_exceeded(message: str) -> ApiError:
    # A spent budget does not heal in a minute: the SDK must not retry it.
    return ApiError(
        403,
        message,
        "privacy_budget_exceeded",
        "privacy_budget_exceeded",
        headers={"x-should-retry": "false"},
    )


def unavailable(message: str, code: str = "service_unavailable") -> ApiError:
    return ApiError(503, message, "service_unavailable", code)


def too_late() -> ApiError:
    """The deadline passed before the request could be forwarded."""
    return unavailable(
        "The request could not be sanitised in time, so it was neither forwarded nor charged; send "
        "less, or raise PENNAME_REQUEST_TIMEOUT.",
        "deadline_exceeded",
    )


def blocked(message: str, code: str) -> ApiError:
    """The guard or the policy refused the request: 403, nothing forwarded, no retry."""
    return ApiError(
        403, message, "privacy_policy_violation", code, None, {"x-should-retry": "false"}
    )


def upstream_failed(
    status: int, message: str, code: str, headers: Mapping[str, str] | None = None
) -> ApiError:
    return ApiError(status, message, "upstream_error", code, None, headers)
