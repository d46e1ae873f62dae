"""Penname: format-preserving surrogates of structured identifiers."""

from privacy.surrogates.base import (
    Surrogate,
    SurrogateContext,
    SurrogateExhausted,
    SurrogateUnsupported,
)
from privacy.surrogates.dates import shift_date
from privacy.surrogates.registry import (
    make_fresh,
    register,
    surrogate_for,
    surrogate_types,
    unregister,
)

__all__ = [
    "Surrogate",
    "SurrogateContext",
    "SurrogateExhausted",
    "SurrogateUnsupported",
    "make_fresh",
    "register",
    "shift_date",
    "surrogate_for",
    "surrogate_types",
    "unregister",
]
