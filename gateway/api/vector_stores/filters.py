"""Filters of a search over the attributes of files."""

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

_MAX_DEPTH: Final = 8
_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
_LISTS: Final = ("in", "nin")
_ORDERED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


class Comparison(BaseModel):
    """Compares one attribute with a value."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: StrictStr = Field(max_length=64)
    value: _Scalar | list[_Scalar]

    @model_validator(mode="after")
    def _value_fits(self) -> "Comparison":
        if (self.type in _LISTS) != isinstance(self.value, list):
            raise ValueError("value must be a list for in and nin, and no list otherwise")
        return self


class Compound(BaseModel):
    """Joins filters; an empty ``and`` admits everything, an empty ``or`` nothing."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["and", "or"]
    filters: list["Filter"] = Field(max_length=100)

    @model_validator(mode="after")
    def _not_too_deep(self) -> "Compound":
        if _depth(self) > _MAX_DEPTH:
            raise ValueError(f"filters may be nested {_MAX_DEPTH} deep")
        return self


def _kind(value: Any) -> str:
    type_ = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "compound" if type_ in ("and", "or") else "comparison"


Filter = Annotated[
    Annotated[Comparison, Tag("comparison")] | Annotated[Compound, Tag("compound")],
    Discriminator(_kind),
]
Compound.model_rebuild()


def matches(condition: Comparison | Compound, attributes: Mapping[str, Any]) -> bool:
    """Return whether a file with these attributes passes.

    A missing attribute equals nothing: it passes ``ne`` and ``nin`` and fails the rest.  Order is
    defined between numbers and between strings only.
    """
    if isinstance(condition, Compound):
        results = (matches(each, attributes) for each in condition.filters)
        return all(results) if condition.type == "and" else any(results)
    present = condition.key in attributes
    actual = attributes.get(condition.key)
    wanted = condition.value if isinstance(condition.value, list) else [condition.value]
    equal = present and any(_same(actual, each) for each in wanted)
    if condition.type in ("eq", "in"):
        return equal
    if condition.type in ("ne", "nin"):
        return not equal
    return (
        present and _comparable(actual, wanted[0]) and _ORDERED[condition.type](actual, wanted[0])
    )


def _same(actual: Any, wanted: Any) -> bool:
    # In Python True equals 1; as attributes they are different values.
    return isinstance(actual, bool) == isinstance(wanted, bool) and bool(actual == wanted)


def _comparable(actual: Any, wanted: Any) -> bool:
    if isinstance(actual, bool) or isinstance(wanted, bool):
        return False
    return isinstance(actual, str) == isinstance(wanted, str)


def _depth(condition: Comparison | Compound) -> int:
    if isinstance(condition, Comparison):
        return 1
    return 1 + max((_depth(each) for each in condition.filters), default=0)
